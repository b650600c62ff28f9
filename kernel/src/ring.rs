//! All-reduce around a ring of channels.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::{Channel, Error};

use crate::collective::{Collective, CollectiveParams, Piece};
use crate::kernel;
use crate::mesh::{Link, READY, WRITTEN};

/// Neighbours of a rank, all served by the main thread.
struct Ring<'p> {
    of: Collective<'p>,
    /// To the rank before.
    previous: Channel,
    next: Link,
}

impl<'p> Ring<'p> {
    fn new(params: &'p CollectiveParams) -> Result<Self, Error> {
        let of = Collective::new(params)?;
        let (rank, ranks) = (params.rank, params.rank_size.max(1));
        // The own rank is not in the list.
        let link = |peer: u64| of.mesh.link(if peer < rank { peer } else { peer.wrapping_sub(1) });
        let (previous, next) = (link((rank + ranks - 1) % ranks)?.channel, link((rank + 1) % ranks)?);
        Ok(Self { of, previous, next })
    }

    /// Part `rank + shift` of a piece.
    fn part(&self, piece: Piece, shift: u64) -> Piece {
        let CollectiveParams { rank, rank_size, .. } = *self.of.params;
        self.of.cut(piece, (rank + shift) % rank_size)
    }

    /// Sends elements of the output to the next rank's buffer, while the previous rank fills the own one.
    fn step(&self, part: Piece) -> Result<(), Error> {
        let (main, size) = (&self.of.main, self.of.size);
        let src = self.of.element(self.of.params.user_out, part.first);
        self.previous.notify_record(main, READY)?;
        self.next.channel.notify_wait_default(main, READY)?;
        self.next.channel.write(main, self.next.ccl_buf, src, part.count * size)?;
        self.next.channel.notify_record(main, WRITTEN)?;
        self.previous.notify_wait_default(main, WRITTEN)
    }

    fn output(&self, part: Piece) -> DeviceAddr {
        self.of.element(self.of.params.user_out, part.first)
    }
}

kernel! {
    /// Reduces the inputs of all ranks at all ranks, by the neighbours in a ring alone.
    ///
    /// Piece by piece, each cut into a part for each rank: in `rank_size - 1` steps each rank sends a part to the next one, which adds
    /// its own; in as many steps the sums go round. A rank writes `2 * (rank_size - 1) / rank_size * count` elements, all of them to
    /// one peer.
    ///
    /// # Errors
    /// As [`reduce_scatter`](crate::reduce_scatter()).
    pub fn all_reduce_ring(params: &CollectiveParams) -> Result<(), Error> {
        let ring = Ring::new(params)?;
        let (of, ranks) = (&ring.of, params.rank_size);
        // The whole buffer is for one part of a piece.
        of.in_pieces(params.ccl_buf_size / of.size * ranks, |piece| {
            of.copy(ring.output(piece), of.element(params.user_in, piece.first), piece.count)?;
            for step in 0..ranks - 1 {
                ring.step(ring.part(piece, ranks - step))?;
                let part = ring.part(piece, 2 * ranks - step - 1);
                of.reduce(ring.output(part), params.ccl_buf, part.count)?;
            }
            for step in 0..ranks - 1 {
                ring.step(ring.part(piece, ranks + 1 - step))?;
                let part = ring.part(piece, ranks - step);
                of.copy(ring.output(part), params.ccl_buf, part.count)?;
            }
            Ok(())
        })
    }
}
