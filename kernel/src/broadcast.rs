//! Broadcast over a full mesh of channels.

use hcomm_aicpu::Error;

use crate::collective::{Collective, CollectiveParams};
use crate::kernel;

kernel! {
    /// The input of rank `root` becomes the output of all ranks.
    ///
    /// Piece by piece, each as large as the buffer: the root writes it to the buffer of each peer, which copies it out. The root writes
    /// `(rank_size - 1) * count` elements; ranks that are not the root exchange notifies alone.
    ///
    /// # Errors
    /// As [`reduce_scatter`](crate::reduce_scatter()).
    pub fn broadcast(params: &CollectiveParams) -> Result<(), Error> {
        let of = Collective::new(params)?;
        let is_root = params.rank == params.root;
        of.in_pieces(params.ccl_buf_size / of.size, |piece| {
            let src = of.element(params.user_in, piece.first);
            of.mesh.exchange(&of.main, |link| match is_root {
                true => link.channel.write(&link.thread, link.ccl_buf, src, piece.count * of.size),
                false => Ok(()),
            })?;
            let from = if is_root { src } else { params.ccl_buf };
            of.copy(of.element(params.user_out, piece.first), from, piece.count)
        })
    }
}
