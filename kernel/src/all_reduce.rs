//! All-reduce over a full mesh of channels.

use hcomm_aicpu::Error;

use crate::collective::{Collective, CollectiveParams};
use crate::kernel;
use crate::mesh::at;

kernel! {
    /// Reduces the inputs of all ranks at all ranks.
    ///
    /// Piece by piece, each cut into a part for each rank: write each peer's part into the own slot of its buffer; reduce the own part
    /// and what has come into the own slot of the own buffer; write that to the same slot of each peer; copy all slots out. A rank
    /// writes `2 * (rank_size - 1) / rank_size * count` elements.
    ///
    /// # Errors
    /// As [`reduce_scatter`](crate::reduce_scatter()).
    pub fn all_reduce(params: &CollectiveParams) -> Result<(), Error> {
        let of = Collective::new(params)?;
        let own = of.slot_of(params.rank);
        of.in_pieces(of.slot / of.size * params.rank_size, |piece| {
            let mine = of.cut(piece, params.rank);
            of.mesh.exchange(&of.main, |link| {
                let part = of.cut(piece, link.rank);
                let src = of.element(params.user_in, part.first);
                link.channel.write(&link.thread, at(link.ccl_buf, params.rank * of.slot), src, part.count * of.size)
            })?;
            of.copy(own, of.element(params.user_in, mine.first), mine.count)?;
            of.peers().try_for_each(|peer| of.reduce(own, of.slot_of(peer), mine.count))?;
            of.mesh.exchange(&of.main, |link| {
                link.channel.write(&link.thread, at(link.ccl_buf, params.rank * of.slot), own, mine.count * of.size)
            })?;
            (0..params.rank_size).try_for_each(|rank| {
                let part = of.cut(piece, rank);
                of.copy(of.element(params.user_out, part.first), of.slot_of(rank), part.count)
            })
        })
    }
}
