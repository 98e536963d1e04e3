//! Renderings of parts on disk, so that requests of ranges render a part once.

use std::fs::File;
use std::future::Future;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use tokio::io::AsyncWriteExt;
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::limits::ConcurrencyLimit;
use crate::ports::StoreError;
use crate::problem::Problem;

/// The most renderings that are kept.
const MAX_RENDERINGS: usize = 256;
/// A rendering that is not asked for this long is removed.
const IDLE_TIME: Duration = Duration::from_secs(600);
/// The time between two searches for such renderings.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Identifies a rendering. Tenants have no renderings in common, so that no tenant notices another's requests.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::api) struct RenderingKey {
    pub(in crate::api) tenant: String,
    pub(in crate::api) release: Uuid,
    pub(in crate::api) file: String,
    /// Differs between formats and views.
    pub(in crate::api) etag: String,
}

/// Renderings in unnamed files, bounded in bytes and number, shared by clones.
#[derive(Clone)]
pub struct RenderingCache {
    folder: Arc<Path>,
    max_bytes: u64,
    /// The most bytes of one tenant.
    share: u64,
    /// Limit of concurrent renderings.
    making: ConcurrencyLimit,
    kept: Arc<Mutex<KeptRenderings>>,
}

#[derive(Default)]
struct KeptRenderings {
    renderings: AHashMap<RenderingKey, RenderingSlot>,
    /// Bytes on disk by tenant, with unfinished files and removed ones that are still read.
    bytes: AHashMap<String, u64>,
    /// Whether a task removes unused renderings.
    swept: bool,
}

/// A finished rendering; `None` if it exceeds the share of a tenant.
type Rendered = OnceCell<Option<Arc<RenderedFile>>>;

struct RenderingSlot {
    /// The first caller fills it, others wait.
    made: Arc<Rendered>,
    used: Instant,
}

/// Why no rendering was made.
enum RenderingError {
    Refused(Problem),
    NoSpace,
}

impl RenderingCache {
    /// Keeps at most `max_bytes` in unnamed files of `folder`, and nothing if they are 0; one tenant has at most half.
    #[must_use]
    pub fn new(folder: Arc<Path>, max_bytes: u64, making: ConcurrencyLimit) -> Self {
        Self { folder, max_bytes, share: max_bytes.div_ceil(2), making, kept: Arc::default() }
    }

    /// A rendering, if it is finished.
    pub(in crate::api) fn finished(&self, key: &RenderingKey) -> Option<Arc<RenderedFile>> {
        let mut kept = locked(&self.kept);
        let slot = kept.renderings.get_mut(key)?;
        slot.used = Instant::now();
        slot.made.get().cloned().flatten()
    }

    /// A rendering, which is made from `source` if it is missing. `None` if it does not fit.
    ///
    /// # Errors
    /// The problem of `source`, or `too-many-requests`.
    pub(in crate::api) async fn get_or_make<S>(
        &self,
        key: &RenderingKey,
        source: impl Future<Output = Result<S, Problem>>,
    ) -> Result<Option<Arc<RenderedFile>>, Problem>
    where
        S: Stream<Item = Result<Bytes, StoreError>> + Unpin,
    {
        if self.max_bytes == 0 {
            return Ok(None);
        }
        let made = self.slot(key);
        let making = async {
            let _permit = self.making.acquire(&key.tenant).await.map_err(RenderingError::Refused)?;
            let written = self.write(&key.tenant, source.await.map_err(RenderingError::Refused)?).await?;
            if !std::mem::replace(&mut locked(&self.kept).swept, true) {
                tokio::spawn(sweep(Arc::downgrade(&self.kept)));
            }
            Ok(written)
        };
        match made.get_or_try_init(|| making).await {
            Ok(file) => Ok(file.clone()),
            Err(RenderingError::NoSpace) => Ok(None),
            Err(RenderingError::Refused(problem)) => Err(problem),
        }
    }

    /// Removes the renderings of a release that is served no more.
    pub(in crate::api) fn remove_release(&self, release: Uuid) {
        self.remove(|key, _| key.release == release);
    }

    fn remove(&self, mut condition: impl FnMut(&RenderingKey, &RenderingSlot) -> bool) {
        let removed: Vec<_> = locked(&self.kept).renderings.extract_if(|key, slot| condition(key, slot)).collect();
        // a dropped file takes the lock
        drop(removed);
    }

    fn slot(&self, key: &RenderingKey) -> Arc<Rendered> {
        let full = {
            let mut kept = locked(&self.kept);
            if let Some(slot) = kept.renderings.get_mut(key) {
                slot.used = Instant::now();
                return Arc::clone(&slot.made);
            }
            kept.renderings.len() >= MAX_RENDERINGS
        };
        if full {
            self.remove_oldest(|_, _| true);
        }
        let new = || RenderingSlot { made: Arc::default(), used: Instant::now() };
        Arc::clone(&locked(&self.kept).renderings.entry(key.clone()).or_insert_with(new).made)
    }

    /// Removes the rendering that was unused for the longest time; false if there is none.
    fn remove_oldest(&self, condition: impl Fn(&RenderingKey, &RenderingSlot) -> bool) -> bool {
        let removed = {
            let mut kept = locked(&self.kept);
            let candidates = kept.renderings.iter().filter(|(key, slot)| condition(key, slot));
            let oldest = candidates.min_by_key(|(_, slot)| slot.used).map(|(key, _)| key.clone());
            oldest.and_then(|key| kept.renderings.remove(&key))
        };
        removed.is_some()
    }

    async fn write<S>(&self, tenant: &str, mut source: S) -> Result<Option<Arc<RenderedFile>>, RenderingError>
    where
        S: Stream<Item = Result<Bytes, StoreError>> + Unpin,
    {
        let no_space = |error: io::Error| {
            tracing::warn!(%error, "rendering of a part was not kept");
            RenderingError::NoSpace
        };
        let mut space = DiskSpace { kept: Arc::downgrade(&self.kept), tenant: tenant.to_owned(), bytes: 0 };
        let mut file = tokio::fs::File::from_std(tempfile::tempfile_in(&*self.folder).map_err(no_space)?);
        while let Some(piece) = source.next().await {
            let piece = piece.map_err(|error| RenderingError::Refused(error.into()))?;
            let more = piece.len() as u64;
            if space.bytes + more > self.share {
                return Ok(None);
            }
            if !self.make_space(tenant, more) {
                return Err(RenderingError::NoSpace);
            }
            space.bytes += more;
            file.write_all(&piece).await.map_err(no_space)?;
        }
        file.flush().await.map_err(no_space)?;
        Ok(Some(Arc::new(RenderedFile { file: file.into_std().await, space })))
    }

    /// Takes bytes of the disk for a tenant, by removal of what was unused for the longest time.
    fn make_space(&self, tenant: &str, more: u64) -> bool {
        loop {
            let own_only = {
                let mut kept = locked(&self.kept);
                let all: u64 = kept.bytes.values().sum();
                let own = kept.bytes.get(tenant).copied().unwrap_or(0) + more;
                if own <= self.share && all + more <= self.max_bytes {
                    kept.bytes.insert(tenant.to_owned(), own);
                    return true;
                }
                own > self.share
            };
            let has_file = |slot: &RenderingSlot| slot.made.get().is_some_and(Option::is_some);
            if !self.remove_oldest(|key, slot| has_file(slot) && (!own_only || key.tenant == tenant)) {
                return false;
            }
        }
    }
}

fn locked(kept: &Mutex<KeptRenderings>) -> MutexGuard<'_, KeptRenderings> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes renderings after their last use, so that the bytes of a withdrawn release leave the disk; ends without renderings.
async fn sweep(kept: Weak<Mutex<KeptRenderings>>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        let Some(kept) = kept.upgrade() else { return };
        let (removed, goes_on): (Vec<_>, bool) = {
            let mut kept = locked(&kept);
            let removed = kept.renderings.extract_if(|_, slot| slot.used.elapsed() >= IDLE_TIME).collect();
            kept.swept = !kept.renderings.is_empty();
            (removed, kept.swept)
        };
        // a dropped file takes the lock
        drop(removed);
        if !goes_on {
            return;
        }
    }
}

/// Bytes on disk, free again when dropped.
struct DiskSpace {
    kept: Weak<Mutex<KeptRenderings>>,
    tenant: String,
    bytes: u64,
}

impl Drop for DiskSpace {
    fn drop(&mut self) {
        let Some(kept) = self.kept.upgrade() else { return };
        let mut kept = locked(&kept);
        // tenants without files are forgotten
        let left = kept.bytes.remove(&self.tenant).and_then(|held| held.checked_sub(self.bytes));
        if let Some(left) = left.filter(|left| *left > 0) {
            kept.bytes.insert(std::mem::take(&mut self.tenant), left);
        }
    }
}

/// A rendering in an unnamed file, which goes with its last reader.
pub(in crate::api) struct RenderedFile {
    file: File,
    space: DiskSpace,
}

impl RenderedFile {
    /// The number of its bytes.
    pub(in crate::api) const fn length(&self) -> u64 {
        self.space.bytes
    }

    /// Reads bytes at a position.
    pub(in crate::api) fn read(&self, at: u64, number: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; number];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures_util::stream;

    use super::*;

    fn key(tenant: &str, file: &str) -> RenderingKey {
        RenderingKey { tenant: tenant.into(), release: Uuid::nil(), file: file.into(), etag: String::new() }
    }

    fn cache(max_bytes: u64) -> (RenderingCache, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let cache = RenderingCache::new(folder.path().into(), max_bytes, ConcurrencyLimit::new("renderings", 4));
        (cache, folder)
    }

    type Pieces = stream::Iter<std::vec::IntoIter<Result<Bytes, StoreError>>>;

    async fn source(bytes: usize, made: &AtomicU32) -> Result<Pieces, Problem> {
        made.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        Ok(stream::iter(vec![Ok(Bytes::from(vec![7; bytes / 2])), Ok(Bytes::from(vec![8; bytes - bytes / 2]))]))
    }

    #[tokio::test]
    async fn many_readers_make_a_rendering_once() {
        let (cache, _folder) = cache(1000);
        let (made, key) = (AtomicU32::new(0), key("a", "f"));
        assert!(cache.finished(&key).is_none());
        let readers = (0..50).map(|_| cache.get_or_make(&key, source(10, &made)));
        for file in futures_util::future::join_all(readers).await {
            let file = file.unwrap().unwrap();
            assert_eq!((file.length(), file.read(3, 4).unwrap()), (10, vec![7, 7, 8, 8]));
        }
        assert_eq!(made.load(Ordering::SeqCst), 1);
        assert!(cache.finished(&key).is_some());
        cache.remove_release(Uuid::nil());
        assert!(cache.finished(&key).is_none());
        assert!(locked(&cache.kept).bytes.is_empty());
    }

    #[tokio::test]
    async fn bytes_are_bounded_and_shared() {
        let (cache, _folder) = cache(1000);
        let made = AtomicU32::new(0);
        let get = async |tenant: &str, file: &str, bytes: usize| {
            cache.get_or_make(&key(tenant, file), source(bytes, &made)).await.unwrap()
        };
        let has = |tenant: &str, file: &str| cache.finished(&key(tenant, file)).is_some();
        // above the share of a tenant: tried once
        assert!(get("a", "large", 501).await.is_none() && get("a", "large", 501).await.is_none());
        assert_eq!(made.load(Ordering::SeqCst), 1);
        assert!(get("a", "1", 300).await.is_some() && get("b", "1", 300).await.is_some());
        // a tenant above its share loses its own
        assert!(get("a", "2", 300).await.is_some());
        assert!(!has("a", "1") && has("a", "2") && has("b", "1"));
        // above all bytes, the one that was unused for the longest time goes
        assert!(get("c", "1", 450).await.is_some());
        assert!(!has("a", "2") && has("b", "1"));
        // a file that is still read keeps its bytes
        let read = get("b", "1", 300).await;
        cache.remove_release(Uuid::nil());
        assert!(get("b", "2", 300).await.is_none());
        assert!(!has("b", "2"));
        drop(read);
        assert!(get("b", "2", 300).await.is_some());
    }

    #[tokio::test]
    async fn failures_are_not_kept_and_numbers_are_bounded() {
        let (cache, _folder) = cache(1 << 20);
        let made = AtomicU32::new(0);
        let broken = async { Ok(stream::iter([Ok(Bytes::from_static(b"x")), Err(StoreError::NotFound)])) };
        assert!(cache.get_or_make(&key("a", "f"), broken).await.is_err());
        assert!(locked(&cache.kept).bytes.is_empty());
        assert!(cache.get_or_make(&key("a", "f"), source(2, &made)).await.unwrap().is_some());
        for file in 0..MAX_RENDERINGS + 5 {
            cache.get_or_make(&key("a", &file.to_string()), source(2, &made)).await.unwrap().unwrap();
        }
        assert_eq!(locked(&cache.kept).renderings.len(), MAX_RENDERINGS);
        assert_eq!(locked(&cache.kept).bytes["a"], 2 * MAX_RENDERINGS as u64);
    }
}
