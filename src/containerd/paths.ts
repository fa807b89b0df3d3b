/**
 * Paths and names of a private containerd. All derive from the data directory, so that a later start, `down` and
 * `reset` find them, and clusters on one machine do not collide.
 */
import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'

export interface ContainerdPaths {
  /** Data that survives a reboot. */
  readonly folder: string
  readonly root: string
  readonly configFile: string
  readonly logFile: string
  readonly networkConfigFolder: string
  /** Registry configuration and mirrors of this cluster, in containerd's format: one directory per registry. */
  readonly registryFolder: string
  /** Allocated pod addresses. */
  readonly addressFolder: string
  /**
   * State that must not survive a reboot, and sockets. Socket paths are limited to 107 bytes, so it is not below the
   * data directory.
   */
  readonly stateFolder: string
  readonly socket: string
  /**
   * The name of the CNI network and its bridge (at most 15 characters). CNI derives chains, files and addresses from
   * it; nftables tables begin with it.
   */
  readonly network: string
  /** The bridge between the nodes of the cluster on this machine. */
  readonly nodeBridge: string
  /** The link to pods on other nodes. */
  readonly overlay: string
  /** Ten hexadecimal digits. */
  readonly id: string
  /** The cgroup of all pods of the cluster, in each hierarchy; begins with a slash. */
  readonly cgroupParent: string
}

const STATE_ROOT = '/run/hyperkube'

export function containerdPaths(dataDir: string, stateRoot: string = STATE_ROOT): ContainerdPaths {
  const path = resolve(dataDir)
  const id = createHash('sha256').update(path).digest('hex').slice(0, 10)
  const folder = join(path, 'containerd')
  const stateFolder = join(stateRoot, id)
  return {
    folder,
    root: join(folder, 'root'),
    configFile: join(folder, 'config.toml'),
    logFile: join(folder, 'containerd.log'),
    networkConfigFolder: join(folder, 'net.d'),
    registryFolder: join(folder, 'certs.d'),
    addressFolder: join(folder, 'addresses'),
    stateFolder,
    socket: join(stateFolder, 'containerd.sock'),
    network: `hk-${id}`,
    nodeBridge: `hkn-${id}`,
    overlay: `hkv-${id}`,
    id,
    cgroupParent: `/hyperkube-${id}`,
  }
}
