/** Configuration of a private containerd: format version 2 for containerd 1.x, version 3 since 2.0. Pure. */
import { join } from 'node:path'

import type { ContainerdPaths } from './paths.ts'
import { toml, type TomlTable } from './toml.ts'

export interface ContainerdSettings {
  readonly places: ContainerdPaths
  /** Major version of containerd. */
  readonly major: number
  readonly runc: string
  /** Directory of the CNI plugins. */
  readonly plugins: string
  readonly snapshotter: 'overlayfs' | 'native'
  readonly sandboxImage: string
  /** True if we may lower the OOM score of processes, which needs CAP_SYS_RESOURCE. */
  readonly mayLowerOomScore: boolean
}

/** Plugins that are unused, or that would use a path shared by all containerds of a machine. */
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
    // Level info logs every call, so the file would grow with each probe.
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
      // The transfer service supports only one registry directory.
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

/** Registry mirrors set by administrators: for this cluster, else for the machine. */
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
