//! Reduce-scatter over a full mesh of channels.

use hcomm_aicpu::Error;

use crate::collective::{Collective, CollectiveParams};
use crate::kernel;
use crate::mesh::at;

kernel! {
    /// Reduces part *r* of the inputs of all ranks at rank *r*.
    ///
    /// Piece by piece: write each peer's part of the own input into the own slot of the peer's buffer; reduce the own part and what
    /// has come. A rank writes `(rank_size - 1) * count` elements to its peers and reduces as many.
    ///
    /// # Errors
    /// A type or operator that is not computed, a buffer of less than an element for each rank, and those of the calls.
    pub fn reduce_scatter(params: &CollectiveParams) -> Result<(), Error> {
        let of = Collective::new(params)?;
        of.in_pieces(of.slot / of.size, |piece| {
            of.mesh.exchange(&of.main, |link| {
                let src = of.part(params.user_in, link.rank, piece.first);
                link.channel.write(&link.thread, at(link.ccl_buf, params.rank * of.slot), src, piece.count * of.size)
            })?;
            let out = of.element(params.user_out, piece.first);
            of.copy(out, of.part(params.user_in, params.rank, piece.first), piece.count)?;
            of.peers().try_for_each(|peer| of.reduce(out, of.slot_of(peer), piece.count))
        })
    }
}
