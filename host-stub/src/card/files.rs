//! Where the runtime of a card and the description of the package are.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::error::CardError;
use super::kind::DeviceKind;
use crate::loader::target_folders;

/// Environment variable that names the description of a package, a JSON file; without it, that of the stock package.
pub const DESCRIPTION_VAR: &str = "HCOMM_CARD_KERNELS";
/// Environment variable with the folder of the toolkit.
const TOOLKIT_VAR: &str = "ASCEND_HOME_PATH";
/// The toolkit, unless that variable names another one.
const TOOLKIT: &str = "/usr/local/Ascend/cann";
/// The stock description, below the toolkit, and in the folder of what `make card-package` has built.
const INSTALLED: &str = "opp/vendors/hcomm_card/aicpu/config";
const DESCRIPTION: &str = "libhcomm_card.json";
/// Largest description, in bytes.
const DESCRIPTION_MAX: u64 = 16 << 20;

/// What a device of this kind is made of.
#[derive(Clone, Debug)]
pub struct CardFiles {
    /// Folder of the runtime; `None`: where the loader of programs looks.
    pub runtime: Option<PathBuf>,
    /// Folder of the packages that were built here; `None`: of a card.
    pub built: Option<PathBuf>,
    /// The description.
    pub description: PathBuf,
}

impl CardFiles {
    /// Looks for all of them.
    ///
    /// # Errors
    /// [`CardError::MissingFile`].
    pub fn find(kind: DeviceKind) -> Result<Self, CardError> {
        let chosen = std::env::var_os(DESCRIPTION_VAR).filter(|path| !path.is_empty()).map(PathBuf::from);
        let (runtime, built, description) = if kind == DeviceKind::FakeCard {
            let folders: Vec<_> = target_folders().into_iter().map(|folder| folder.join("card")).collect();
            let runtime = |folder: &Path| folder.join("fake/host");
            let built = folders.iter().find(|folder| runtime(folder).join("libascendcl.so").exists());
            let Some(built) = built else {
                let looked: Vec<_> = folders.iter().map(|folder| runtime(folder).display().to_string()).collect();
                let path = format!("libascendcl.so, the stand-in of a card's runtime, in {}", looked.join(", "));
                return Err(CardError::MissingFile { path, hint: "build it with `make card-package`".to_owned() });
            };
            let description = chosen.unwrap_or_else(|| built.join(DESCRIPTION));
            (Some(runtime(built)), Some(built.clone()), description)
        } else {
            let toolkit = std::env::var_os(TOOLKIT_VAR).map_or_else(|| TOOLKIT.into(), PathBuf::from);
            (None, None, chosen.unwrap_or_else(|| toolkit.join(INSTALLED).join(DESCRIPTION)))
        };
        Ok(Self { runtime, built, description })
    }

    /// Path of the description, as the runtime takes it: an absolute one.
    ///
    /// # Errors
    /// [`CardError::MissingFile`].
    pub fn description_path(&self) -> Result<CString, CardError> {
        let found = self.description.canonicalize().map_err(|error| CardError::MissingFile {
            path: self.description.display().to_string(),
            hint: format!(
                "{error}; `make card-package` makes it and install.sh installs it ({DESCRIPTION_VAR} names another one)"
            ),
        })?;
        Ok(CString::new(found.as_os_str().as_bytes()).expect("a path of the system has no zero byte"))
    }

    /// Names of the kernels in the description.
    ///
    /// # Errors
    /// [`CardError::MissingFile`]: it can't be read, or is no description.
    pub fn kernels(&self) -> Result<BTreeSet<String>, CardError> {
        let unreadable =
            |why: String| CardError::MissingFile { path: self.description.display().to_string(), hint: why };
        let text =
            crate::file::read(&self.description, DESCRIPTION_MAX).map_err(|error| unreadable(error.to_string()))?;
        let json: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))?;
        Ok(json.into_iter().map(|(name, _)| name).collect())
    }
}
