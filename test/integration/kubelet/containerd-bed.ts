/**
 * Starts a private containerd for tests, with a small image and a temporary directory, and finds leftovers on the
 * machine.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { containerFault, readAbility } from '#cluster/runtime-choice.ts'
import { createImageApi } from '#containerd/image-api.ts'
import { withImageWriter } from '#containerd/image-writer.ts'
import { MEDIA_TYPE, nameImage } from '#containerd/manifest.ts'
import { type ContainerdPaths, containerdPaths } from '#containerd/paths.ts'
import { containerdIn, processes, shimsIn } from '#containerd/process-table.ts'
import { findPrograms } from '#containerd/programs.ts'
import { type Containerd, type ContainerdOptions, startContainerd } from '#containerd/start.ts'
import { removeContainerd } from '#containerd/stop.ts'
import { realClock } from '#lib/clock.ts'
import { mountsBelow, readMountTable } from '#lib/files/mount-table.ts'
import { tarArchive } from '#lib/files/tar-write.ts'
import { createLog } from '#lib/log/log.ts'
import { secureRandom } from '#lib/random.ts'

const BUSYBOX = '/bin/busybox'
const APPLETS = ['cat', 'echo', 'ls', 'sh', 'sleep', 'true', 'wget', 'nc', 'ip', 'mkdir', 'kill', 'id']

/**
 * Directory of another containerd than the machine's: `node test/upstream/containerd.ts` builds one and prints its
 * path.
 */
export const PROGRAMS: string | undefined = process.env['HYPERKUBE_CONTAINERD']

export const IMAGE = 'docker.io/library/busybox:suite'

/** Why containerd cannot run here; undefined if it can. */
export async function whyNoContainerd(): Promise<string | undefined> {
  const fault = containerFault({ ...(await readAbility(process.env)), missing: undefined })
  if (fault !== undefined) return fault
  if (!existsSync(BUSYBOX)) return 'there is no busybox (Debian: apt-get install busybox-static)'
  return findPrograms(process.env, PROGRAMS).then(
    () => undefined,
    (error: Error) => error.message,
  )
}

export function busyboxLayer(): Buffer {
  return tarArchive([
    { name: 'bin/', mode: 0o755 },
    { name: 'tmp/', mode: 0o1777 },
    { name: 'bin/busybox', mode: 0o755, content: readFileSync(BUSYBOX) },
    ...APPLETS.map((name) => ({ name: `bin/${name}`, mode: 0o777, link: 'busybox' })),
  ])
}

export function busyboxConfig(
  layer: string,
  architecture: string = process.arch === 'x64' ? 'amd64' : process.arch,
): object {
  return {
    architecture,
    os: 'linux',
    config: { Env: ['PATH=/bin'], Cmd: ['sh'] },
    rootfs: { type: 'layers', diff_ids: [layer] },
  }
}

export interface Bed extends AsyncDisposable {
  /** Sandboxes and shim sockets that were observed. */
  readonly sandboxes: Set<string>
  readonly sockets: Set<string>
  readonly options: ContainerdOptions
  readonly places: ContainerdPaths
  /** Stops containerd with the stack. */
  start(closing: AsyncDisposableStack): Promise<Containerd>
  remove(): Promise<boolean>
}

export function createBed(settings: Partial<ContainerdOptions> = {}): Bed {
  const dataDir = mkdtempSync(join(tmpdir(), 'hyperkube-containerd-'))
  // Its own subnet, because several test runs may overlap.
  const options: ContainerdOptions = {
    dataDir,
    clock: realClock,
    random: secureRandom,
    log: createLog({ stream: process.stderr, clock: realClock }).logger,
    env: process.env,
    ...(PROGRAMS !== undefined && { programs: PROGRAMS }),
    podCidrs: [`10.${200 + secureRandom.int(50)}.${secureRandom.int(256)}.0/24`],
    ...settings,
  }
  return {
    sandboxes: new Set(),
    sockets: new Set(),
    options,
    places: containerdPaths(dataDir),
    start: async (closing) => {
      const containerd = await startContainerd(options, closing)
      await withImageWriter({ ...options, api: createImageApi(containerd.client) }, async (writer) => {
        const layer = await writer.write([busyboxLayer()])
        const config = await writer.writeJson(busyboxConfig(layer.digest))
        await nameImage(writer, { names: [IMAGE], config, layers: [{ ...layer, mediaType: MEDIA_TYPE.layer }] })
      })
      return containerd
    },
    remove: () => removeContainerd(options),
    async [Symbol.asyncDispose]() {
      await removeContainerd(options)
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** Traces of a containerd on the machine, by kind. */
export async function tracesOf({ places, options, sandboxes, sockets }: Bed): Promise<Record<string, string[]>> {
  const [all, table] = await Promise.all([processes(), readMountTable()])
  for (const id of names(join(places.root, 'io.containerd.grpc.v1.cri/sandboxes'))) sandboxes.add(id)
  const tasks = join(places.stateFolder, 'state/io.containerd.runtime.v2.task/k8s.io')
  for (const id of names(tasks)) {
    const file = ['address', 'bootstrap.json'].map((name) => join(tasks, id, name)).find((path) => existsSync(path))
    const socket = /unix:\/\/([^"\s]+)/.exec(file === undefined ? '' : readFileSync(file, 'utf8'))?.[1]
    if (socket !== undefined) sockets.add(socket)
  }
  const links = spawnSync('ip', ['-o', 'link'], { encoding: 'utf8' }).stdout.split('\n')
  const nat = spawnSync('iptables-save', ['-t', 'nat'], { encoding: 'utf8' }).stdout.split('\n')
  return {
    processes: [...containerdIn(all, places), ...shimsIn(all, places)].map(String),
    mounts: mountsBelow(table, places.stateFolder, options.dataDir).map(({ path }) => path),
    cgroups: readdirSync('/sys/fs/cgroup')
      .flatMap((name) => [
        join('/sys/fs/cgroup', name, places.cgroupParent),
        join('/sys/fs/cgroup', places.cgroupParent),
      ])
      .filter((path) => existsSync(path)),
    links: links.filter((line) => line.includes(places.network)),
    nat: nat.filter((line) => line.includes(places.network)),
    results: names('/var/lib/cni/results').filter(
      (name) => name.startsWith(places.network) || sandboxes.has(name.split('-')[2] ?? ''),
    ),
    sockets: [...sockets].filter((path) => existsSync(path)),
    folders: [places.folder, places.stateFolder].filter((path) => existsSync(path)),
    // Other processes with a root or working directory in its directories.
    strays: all.flatMap(({ pid }) => {
      const at = ['root', 'cwd'].map((name) => linkOf(`/proc/${pid}/${name}`))
      return at.some((path) => path.startsWith(places.stateFolder) || path.startsWith(options.dataDir))
        ? [String(pid)]
        : []
    }),
  }
}

function names(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : []
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
