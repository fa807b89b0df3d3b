/**
 * The containerd behind a kubelet: one that listens already, or a private one under the data directory, with its own network,
 * images, snapshots and cgroups, started here and kept alive.
 */
import { lstat, mkdir } from 'node:fs/promises'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { createGrpcClient, type GrpcClient } from '#lib/grpc/client.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'

import { runtimeBehind } from '../cri/client.ts'
import type { Runtime } from '../cri/runtime.ts'
import { containerdConfig } from './config.ts'
import { imageApiBehind } from './image-api.ts'
import { withImageWriter } from './image-writer.ts'
import { networkConfig } from './network.ts'
import { PAUSE_IMAGE, pauseArchitecture, writePauseImage } from './pause-image.ts'
import { type Places, placesOf } from './places.ts'
import { keepContainerd, type KeptProcess } from './process.ts'
import { findPrograms, mayLowerOomScore, snapshotterFor } from './programs.ts'

export interface ContainerdOptions {
  readonly dataDir: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly env: Readonly<Record<string, string | undefined>>
  /** Addresses of pods. Without them the network is not ready until `setPodCidrs` is called. */
  readonly podCidrs?: readonly string[]
  /** Folder with containerd, its shim and runc, when they are not those of the system. */
  readonly programs?: string
}

export interface Containerd {
  /** As `--container-runtime-endpoint` takes it. */
  readonly endpoint: string
  readonly runtime: Runtime
  /** For containerd's own API. */
  readonly client: GrpcClient
  /** Under which the kubelet must put the cgroups of its pods, for `reset` to find them. */
  readonly cgroupParent: string
  /** Pods that start from now on have addresses of these. */
  setPodCidrs(cidrs: readonly string[]): Promise<void>
}

/**
 * Resolves when it answers and has its sandbox image. It ends with `closing`; its containers do not, and the next start finds
 * them. Rejects when the machine lacks what it takes, and with containerd's words when it does not come up.
 */
export async function startContainerd(options: ContainerdOptions, closing: AsyncDisposableStack): Promise<Containerd> {
  const { clock, random } = options
  if (process.getuid?.() !== 0) throw new Error('Only root can run containers with containerd')
  const places = placesOf(options.dataDir)
  const programs = await findPrograms(options.env, options.programs)
  await prepare(options, places, programs)
  const kept = await keepContainerd({ ...options, places, programs }, closing)
  const client = connect(places.socket, options)
  closing.defer(() => client.close())
  const runtime = runtimeBehind(client)
  await answers(runtime, kept, clock)
  await withImageWriter({ api: imageApiBehind(client), clock, random }, (writer) =>
    writePauseImage(writer, pauseArchitecture(process.arch)),
  )
  return {
    endpoint: `unix://${places.socket}`,
    runtime,
    client,
    cgroupParent: places.cgroupParent,
    setPodCidrs: (cidrs) => writeNetwork(places, cidrs),
  }
}

/** Where Debian's, and nearly everybody's, listens. */
const SYSTEM_SOCKET = '/run/containerd/containerd.sock'

/** The endpoint of a containerd that listens already; undefined: there is none. */
export async function findContainerd(
  tools: { readonly clock: Clock; readonly random: Random },
  socket: string = SYSTEM_SOCKET,
): Promise<string | undefined> {
  const found = await lstat(socket).catch(() => undefined)
  if (found?.isSocket() !== true) return undefined
  const client = connect(socket, tools)
  try {
    await runtimeBehind(client).version({}, { timeoutMs: FIND_MS })
    return `unix://${socket}`
  } catch {
    return undefined
  } finally {
    client.close()
  }
}

const FIND_MS = 5000

/** A restart of containerd takes about a second: nobody should wait gRPC's two minutes after it. */
const RECONNECT = { baseMs: 100, factor: 1.6, capMs: 2000, jitter: 0.2 }

export function connect(
  socket: string,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): GrpcClient {
  return createGrpcClient({ targets: [{ path: socket }], clock, random, backoff: RECONNECT })
}

async function prepare(
  options: ContainerdOptions,
  places: Places,
  programs: { readonly major: number; readonly runc: string; readonly plugins: string },
): Promise<void> {
  for (const folder of [
    places.folder,
    places.root,
    places.networkConfigFolder,
    places.addressFolder,
    places.stateFolder,
  ])
    await mkdir(folder, { recursive: true, mode: 0o711 })
  const config = containerdConfig({
    places,
    ...programs,
    snapshotter: await snapshotterFor(places.root),
    sandboxImage: PAUSE_IMAGE,
    mayLowerOomScore: await mayLowerOomScore(),
  })
  await writeFileAtomically(places.configFile, config, { mode: 0o600 })
  if (options.podCidrs !== undefined) await writeNetwork(places, options.podCidrs)
}

/** containerd watches the folder. */
function writeNetwork(places: Places, cidrs: readonly string[]): Promise<void> {
  return writeFileAtomically(`${places.networkConfigFolder}/10-hyperkube.conflist`, networkConfig(cidrs, places), {
    mode: 0o644,
  })
}

const START_MS = 60_000
const POLL_MS = 20
/** It does not come up by trying a fourth time. */
const DEATHS = 3

/** Until containerd does. Throws with its words when it does not come up. */
export async function answers(runtime: Runtime, kept: KeptProcess, clock: Clock): Promise<void> {
  const limit = clock.elapsed() + START_MS
  for (;;) {
    const isUp = await runtime.status({}, { timeoutMs: 5000 }).then(
      () => true,
      () => false,
    )
    if (isUp) return
    if (kept.deaths >= DEATHS || clock.elapsed() > limit)
      throw new Error(`containerd does not come up; it said:\n${await kept.lastWords()}`)
    await sleep(clock, POLL_MS)
  }
}
