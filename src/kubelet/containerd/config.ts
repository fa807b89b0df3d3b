/** containerd's configuration as it is written for a private one: version 2 for containerd 1.x, version 3 since 2.0. Pure. */
import { join } from 'node:path'

import type { Places } from './places.ts'
import { toml, type TomlTable } from './toml.ts'

export interface ContainerdSettings {
  readonly places: Places
  /** First number of containerd's version. */
  readonly major: number
  readonly runc: string
  /** Folder with CNI's plugins. */
  readonly plugins: string
  readonly snapshotter: 'overlayfs' | 'native'
  readonly sandboxImage: string
  /** Whether processes may be made harder to kill than this one is: takes CAP_SYS_RESOURCE. */
  readonly mayLowerOomScore: boolean
}

/** What nobody here uses, or what would take a path that all containerds of a machine share. */
const DISABLED = [
  'io.containerd.snapshotter.v1.aufs',
  'io.containerd.snapshotter.v1.blockfile',
  'io.containerd.snapshotter.v1.btrfs',
  'io.containerd.snapshotter.v1.devmapper',
  'io.containerd.snapshotter.v1.zfs',
  'io.containerd.nri.v1.nri',
  'io.containerd.internal.v1.opt',
]

export function containerdConfig(settings: ContainerdSettings): string {
  const { places, major } = settings
  return toml({
    version: major >= 2 ? 3 : 2,
    root: places.root,
    state: join(places.stateFolder, 'state'),
    disabled_plugins: DISABLED,
    grpc: { address: places.socket },
    // Every call is a line at level info: the file would grow with each probe.
    debug: { level: 'warn' },
    plugins: major >= 2 ? plugins3(settings) : plugins2(settings),
  })
}

function plugins2(settings: ContainerdSettings): TomlTable {
  return {
    'io.containerd.grpc.v1.cri': {
      ...runtimeSection(settings),
      ...STREAMING,
      sandbox_image: settings.sandboxImage,
      cni: { bin_dir: settings.plugins, conf_dir: settings.places.networkConfigFolder },
      containerd: { snapshotter: settings.snapshotter, ...runtimes(settings) },
      registry: registry(settings),
    },
  }
}

function plugins3(settings: ContainerdSettings): TomlTable {
  return {
    'io.containerd.grpc.v1.cri': STREAMING,
    'io.containerd.cri.v1.images': {
      snapshotter: settings.snapshotter,
      pinned_images: { sandbox: settings.sandboxImage },
      // The other way of pulling knows one folder of registries only.
      use_local_image_pull: true,
      registry: registry(settings),
    },
    'io.containerd.cri.v1.runtime': {
      ...runtimeSection(settings),
      cni: { bin_dirs: [settings.plugins], conf_dir: settings.places.networkConfigFolder },
      containerd: runtimes(settings),
    },
  }
}

const STREAMING = { stream_server_address: '127.0.0.1', stream_server_port: '0' }

/** Where administrators say which mirrors to use: for this cluster, else for all of the machine. */
const registry = ({ places }: ContainerdSettings): TomlTable => ({
  config_path: `${places.registryFolder}:/etc/containerd/certs.d`,
})

function runtimeSection({ mayLowerOomScore }: ContainerdSettings): TomlTable {
  return {
    restrict_oom_score_adj: !mayLowerOomScore,
    netns_mounts_under_state_dir: true,
    enable_unprivileged_ports: true,
    enable_unprivileged_icmp: true,
  }
}

function runtimes({ runc, places }: ContainerdSettings): TomlTable {
  const options = { BinaryName: runc, Root: join(places.stateFolder, 'runc'), SystemdCgroup: false }
  return {
    default_runtime_name: 'runc',
    runtimes: { runc: { runtime_type: 'io.containerd.runc.v2', options } },
  }
}
