/**
 * Where a private containerd keeps what is its own, and what its things are called. All follows from the data directory, so
 * that whoever comes later (another start, `down`, `reset`) finds the same, and two clusters on a machine never meet.
 */
import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'

export interface Places {
  /** All that outlives a reboot. */
  readonly folder: string
  readonly root: string
  readonly configFile: string
  readonly logFile: string
  readonly networkConfigFolder: string
  /** Where registries of this cluster, and mirrors of them, are described as containerd wants it: a folder for each. */
  readonly registryFolder: string
  /** Which addresses are taken. */
  readonly addressFolder: string
  /** All that must not outlive a reboot, and sockets, whose paths may have 107 bytes at most: never below the data directory. */
  readonly stateFolder: string
  readonly socket: string
  /** Of the network; CNI names its chains, files and addresses after it, and tables of nftables begin with it. Also that of the bridge (at most 15 characters). */
  readonly network: string
  /** The bridge between the nodes of the cluster that are on this machine. */
  readonly nodeBridge: string
  /** The link to pods of other nodes. */
  readonly overlay: string
  /** Ten hexadecimal digits. */
  readonly id: string
  /** Under which all pods of the cluster are, in each hierarchy of cgroups; begins with a slash. */
  readonly cgroupParent: string
}

const STATE_ROOT = '/run/hyperkube'

export function placesOf(dataDir: string, stateRoot: string = STATE_ROOT): Places {
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
