//! Launches of a device: cores that are in use, and what launches have left.

/// The launches, as the scheduler keeps them.
pub(crate) struct Launches {
    /// Whether each core runs a kernel.
    busy: Vec<bool>,
    /// Launches that were started.
    started: u64,
    /// Parameters of launches that ended with their kernel still running.
    orphans: Vec<u64>,
}

impl Launches {
    /// None so far, on `cores` cores.
    pub(crate) fn new(cores: usize) -> Self {
        Self { busy: vec![false; cores], started: 0, orphans: Vec::new() }
    }

    /// Launches that were started.
    pub(crate) fn started(&self) -> u64 {
        self.started
    }

    /// Whether a kernel runs.
    pub(crate) fn is_any_running(&self) -> bool {
        self.busy.contains(&true)
    }

    /// Whether a core runs no kernel.
    pub(crate) fn has_free_core(&self) -> bool {
        self.busy.contains(&false)
    }

    /// Cores that run a kernel.
    pub(crate) fn busy_cores(&self) -> impl Iterator<Item = usize> {
        let busy: Vec<usize> = (0..self.busy.len()).filter(|core| self.busy[*core]).collect();
        busy.into_iter()
    }

    /// Takes a core that runs no kernel, for the next launch: the core, and the number of the launch.
    pub(crate) fn start(&mut self) -> Option<(usize, u64)> {
        let core = self.busy.iter().position(|busy| !busy)?;
        self.busy[core] = true;
        self.started += 1;
        Some((core, self.started))
    }

    /// The kernel on `core` has returned.
    pub(crate) fn returned(&mut self, core: usize) {
        self.busy[core] = false;
    }

    /// No core runs a kernel.
    pub(crate) fn reset(&mut self) {
        self.busy.fill(false);
    }

    /// Parameters stay allocated: a kernel that still runs may read them.
    pub(crate) fn keep(&mut self, args: Vec<u64>) {
        self.orphans.extend(args);
    }

    /// Parameters that no kernel reads any more.
    pub(crate) fn take_kept(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.orphans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_launch_has_a_core_of_its_own_and_a_number() {
        let mut launches = Launches::new(2);
        assert!(!launches.is_any_running());
        assert_eq!([launches.start(), launches.start(), launches.start()], [Some((0, 1)), Some((1, 2)), None]);
        launches.returned(0);
        assert_eq!(launches.busy_cores().collect::<Vec<_>>(), [1]);
        assert_eq!((launches.start(), launches.started()), (Some((0, 3)), 3));
        launches.reset();
        assert!(!launches.is_any_running());
        launches.keep(vec![7, 8]);
        assert_eq!((launches.take_kept(), launches.take_kept()), (vec![7, 8], vec![]));
    }
}
