//! All-to-all over a full mesh of channels.

use hcomm_aicpu::Error;

use crate::collective::{Collective, CollectiveParams};
use crate::kernel;
use crate::mesh::at;

kernel! {
    /// Part *p* of the input of rank *r* becomes part *r* of the output of rank *p*.
    ///
    /// Piece by piece: write each peer's part into the own slot of its buffer; copy all slots out. A rank writes
    /// `(rank_size - 1) * count` elements.
    ///
    /// # Errors
    /// As [`reduce_scatter`](crate::reduce_scatter()).
    pub fn all_to_all(params: &CollectiveParams) -> Result<(), Error> {
        let of = Collective::new(params)?;
        of.in_pieces(of.slot / of.size, |piece| {
            of.mesh.exchange(&of.main, |link| {
                let src = of.part(params.user_in, link.rank, piece.first);
                link.channel.write(&link.thread, at(link.ccl_buf, params.rank * of.slot), src, piece.count * of.size)
            })?;
            let (src, dst) = (params.user_in, params.user_out);
            of.copy(of.part(dst, params.rank, piece.first), of.part(src, params.rank, piece.first), piece.count)?;
            of.peers().try_for_each(|peer| of.copy(of.part(dst, peer, piece.first), of.slot_of(peer), piece.count))
        })
    }
}
