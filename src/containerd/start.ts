/**
 * Starts a private containerd below the data directory, with its own network, images, snapshots and cgroups, or finds
 * a running one.
 */
import { lstat, mkdir } from 'node:fs/promises'

import { createRuntimeClient } from '#cri/client.ts'
import type { Runtime } from '#cri/runtime.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { createGrpcClient, type GrpcClient } from '#lib/grpc/client.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'

import { containerdConfig } from './config.ts'
import { createImageApi } from './image-api.ts'
import { withImageWriter } from './image-writer.ts'
import { networkConfig } from './network.ts'
import { type ContainerdPaths, containerdPaths } from './paths.ts'
import { PAUSE_IMAGE, pauseArchitecture, writePauseImage } from './pause-image.ts'
import { keepContainerd, type KeptProcess } from './process.ts'
import { findPrograms, mayLowerOomScore, snapshotterFor } from './programs.ts'

export interface ContainerdOptions {
  readonly dataDir: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly env: Readonly<Record<string, string | undefined>>
  /** Pod CIDRs. Without them the network is not ready until `setPodCidrs` is called. */
  readonly podCidrs?: readonly string[]
  /** Directory with containerd, its shim and runc, if not the system's. */
  readonly programs?: string
}

export interface Containerd {
  /** A value for `--container-runtime-endpoint`. */
  readonly endpoint: string
  readonly runtime: Runtime
  /** Client for containerd's API. */
  readonly client: GrpcClient
  /** The parent cgroup of all pods, so that `reset` finds them. */
  readonly cgroupParent: string
  /** Pods that start from now on get addresses from these. */
  setPodCidrs(cidrs: readonly string[]): Promise<void>
}

/**
 * Resolves when containerd answers and has the sandbox image. It stops with `closing`; its containers keep running
 * for the next start. Rejects when programs are missing, or with containerd's log when it does not start.
 */
export async function startContainerd(options: ContainerdOptions, closing: AsyncDisposableStack): Promise<Containerd> {
  const { clock, random } = options
  if (process.getuid?.() !== 0) throw new Error('Only root can run containers with containerd')
  const places = containerdPaths(options.dataDir)
  const programs = await findPrograms(options.env, options.programs)
  await prepare(options, places, programs)
  const kept = await keepContainerd({ ...options, places, programs }, closing)
  const client = connect(places.socket, options)
  closing.defer(() => client.close())
  const runtime = createRuntimeClient(client)
  await waitUntilReady(runtime, kept, clock)
  await withImageWriter({ api: createImageApi(client), clock, random }, (writer) =>
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

/** The default socket of most distributions. */
const SYSTEM_SOCKET = '/run/containerd/containerd.sock'

/** The endpoint of a running containerd; undefined without one. */
export async function findContainerd(
  tools: { readonly clock: Clock; readonly random: Random },
  socket: string = SYSTEM_SOCKET,
): Promise<string | undefined> {
  const found = await lstat(socket).catch(() => undefined)
  if (found?.isSocket() !== true) return undefined
  const client = connect(socket, tools)
  try {
    await createRuntimeClient(client).version({}, { timeoutMs: FIND_MS })
    return `unix://${socket}`
  } catch {
    return undefined
  } finally {
    client.close()
  }
}

const FIND_MS = 5000

/** A restart of containerd takes about a second, so gRPC's default of two minutes is too long. */
const RECONNECT = { baseMs: 100, factor: 1.6, capMs: 2000, jitter: 0.2 }

export function connect(
  socket: string,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): GrpcClient {
  return createGrpcClient({ targets: [{ path: socket }], clock, random, backoff: RECONNECT })
}

async function prepare(
  options: ContainerdOptions,
  places: ContainerdPaths,
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

/** containerd watches the directory. */
function writeNetwork(places: ContainerdPaths, cidrs: readonly string[]): Promise<void> {
  return writeFileAtomically(`${places.networkConfigFolder}/10-hyperkube.conflist`, networkConfig(cidrs, places), {
    mode: 0o644,
  })
}

const START_MS = 60_000
const POLL_MS = 20
/** After three exits a fourth attempt is pointless. */
const DEATHS = 3

/** Waits until containerd answers. Throws with its log when it does not start. */
export async function waitUntilReady(runtime: Runtime, kept: KeptProcess, clock: Clock): Promise<void> {
  const limit = clock.elapsed() + START_MS
  for (;;) {
    const isUp = await runtime.status({}, { timeoutMs: 5000 }).then(
      () => true,
      () => false,
    )
    if (isUp) return
    if (kept.deaths >= DEATHS || clock.elapsed() > limit)
      throw new Error(`containerd does not come up; its log ends with:\n${await kept.lastLogLines()}`)
    await sleep(clock, POLL_MS)
  }
}
