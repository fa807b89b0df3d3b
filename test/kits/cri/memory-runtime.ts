/**
 * An in-memory container runtime for tests: containers are simulated from their commands on a virtual clock, without
 * root. Calls are fields, so that a test can replace one: `{ ...runtime, createContainer: … }`.
 */
import type { ContainerEventResponse } from '#apis/wire/cri.ts'
import { CGROUP_DRIVER, CONTAINER_EVENT, CONTAINER_STATE, SANDBOX_STATE } from '#cri/codes.ts'
import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import type { Random } from '#lib/random.ts'

import { EventFeed } from './event-feed.ts'
import { behaviorOf, type ContainerBehavior, type ExecBehavior, MemoryContainer } from './memory-container.ts'
import { type MemoryImage, MemoryImages } from './memory-images.ts'
import { MemorySandbox, SandboxAddresses } from './memory-sandbox.ts'
import { containerStatsOf, filesystemOf, sandboxStatsOf } from './memory-stats.ts'
import { nanosOf } from './nanos.ts'

export interface MemoryRuntimeOptions {
  readonly clock: Clock
  readonly random: Random
  /** The first three numbers of sandbox addresses. Default: 10.88.0, then 10.88.1 and so on. */
  readonly network?: string
  /** Overrides the behavior of a container. */
  readonly behavior?: (config: MemoryContainer['config']) => Partial<ContainerBehavior> | undefined
  /** Overrides the result of a command. Default: derived from the command. */
  readonly exec?: (container: MemoryContainer, command: readonly string[]) => ExecBehavior | undefined
  /** The registry's metadata of an image. Throws the error of a failed pull. Default: every image exists. */
  readonly pull?: (image: string) => MemoryImage | Promise<MemoryImage>
  /** Receives log lines in the runtime's format. Default: none; `linesOf` returns them. */
  readonly writeLog?: (path: string, line: string) => void
}

const unimplemented = (method: string) => (): Promise<never> =>
  Promise.reject(new GrpcError('unimplemented', `method ${method} not implemented`))

export class MemoryRuntime implements Runtime {
  readonly #options: MemoryRuntimeOptions
  readonly #sandboxes = new Map<string, MemorySandbox>()
  readonly #containers = new Map<string, MemoryContainer>()
  readonly #images: MemoryImages
  readonly #addresses: SandboxAddresses
  readonly #feed = new EventFeed((id, type) => this.#event(id, type))

  constructor(options: MemoryRuntimeOptions) {
    this.#options = options
    this.#images = new MemoryImages(options)
    this.#addresses = new SandboxAddresses(options.network ?? '10.88.0')
  }

  /** Ends a container as if it exited; ignored when it does not run. */
  readonly end = (id: string, how: { readonly exitCode: number; readonly reason?: string }): void =>
    this.#containers.get(id)?.end(how)
  /** The lines it has written so far. */
  readonly linesOf = (id: string): readonly string[] => this.#containers.get(id)?.lines() ?? []

  readonly version: Runtime['version'] = async () => ({
    version: '0.1.0',
    runtimeName: 'memory',
    runtimeVersion: 'v1.0.0',
    runtimeApiVersion: 'v1',
  })
  readonly status: Runtime['status'] = async () => ({
    status: {
      conditions: ['RuntimeReady', 'NetworkReady'].map((type) => ({ type, status: true, reason: '', message: '' })),
    },
    info: new Map(),
    runtimeHandlers: ['', 'runc'].map((name) => ({
      name,
      features: { recursiveReadOnlyMounts: true, userNamespaces: true },
    })),
    features: { supplementalGroupsPolicy: true, userNamespacesHostNetwork: false },
  })
  readonly runtimeConfig: Runtime['runtimeConfig'] = async () => ({ linux: { cgroupDriver: CGROUP_DRIVER.cgroupfs } })
  readonly updateRuntimeConfig: Runtime['updateRuntimeConfig'] = async () => ({})

  readonly runPodSandbox: Runtime['runPodSandbox'] = async ({ config = {}, runtimeHandler = '' }) => {
    if (runtimeHandler !== '' && runtimeHandler !== 'runc') {
      const text = `failed to get sandbox runtime: no runtime for ${JSON.stringify(runtimeHandler)} is configured`
      throw new GrpcError('unknown', text)
    }
    const sandbox = new MemorySandbox(this.#newId(), { config, runtimeHandler, nowMs: this.#nowMs() })
    reserve('sandbox', sandbox, this.#sandboxes)
    if (!sandbox.isOnHostNetwork) sandbox.ip = this.#addresses.take()
    this.#feed.publish(sandbox.id, CONTAINER_EVENT.created)
    this.#feed.publish(sandbox.id, CONTAINER_EVENT.started)
    return { podSandboxId: sandbox.id }
  }
  readonly stopPodSandbox: Runtime['stopPodSandbox'] = async ({ podSandboxId = '' }) => {
    const sandbox = this.#sandboxes.get(podSandboxId)
    if (sandbox !== undefined) await this.#stopSandbox(sandbox)
    return {}
  }
  readonly removePodSandbox: Runtime['removePodSandbox'] = async ({ podSandboxId = '' }) => {
    const sandbox = this.#sandboxes.get(podSandboxId)
    if (sandbox === undefined) return {}
    await this.#stopSandbox(sandbox)
    for (const one of this.#containersOf(sandbox.id)) await this.#removeContainer(one)
    this.#feed.publish(sandbox.id, CONTAINER_EVENT.deleted)
    this.#sandboxes.delete(sandbox.id)
    return {}
  }
  readonly podSandboxStatus: Runtime['podSandboxStatus'] = async ({ podSandboxId = '' }) => ({
    status: this.#sandbox(podSandboxId).status(),
    info: new Map(),
    containersStatuses: this.#containersOf(podSandboxId).map((one) => one.status()),
    timestamp: nanosOf(this.#nowMs()),
  })
  readonly listPodSandbox: Runtime['listPodSandbox'] = async ({ filter }) => ({
    items: matching(this.#sandboxes, filter).map((one) => one.summary()),
  })
  readonly updatePodSandboxResources: Runtime['updatePodSandboxResources'] = async ({ podSandboxId = '' }) => {
    this.#sandbox(podSandboxId)
    return {}
  }

  readonly createContainer: Runtime['createContainer'] = async ({ podSandboxId = '', config = {}, sandboxConfig }) => {
    const sandbox = this.#sandbox(podSandboxId, `failed to find sandbox id ${JSON.stringify(podSandboxId)}`)
    const image = this.#images.find(config.image?.image ?? '')
    if (image === undefined) {
      const text = `failed to resolve image ${JSON.stringify(config.image?.image ?? '')}: not found`
      throw new GrpcError('notFound', text)
    }
    const container: MemoryContainer = new MemoryContainer(this.#newId(), {
      sandbox,
      config,
      image,
      clock: this.#options.clock,
      logDirectory: sandboxConfig?.logDirectory ?? sandbox.config.logDirectory,
      writeLog: this.#options.writeLog,
      behavior: (whole) => ({ ...behaviorOf(whole, image), ...this.#options.behavior?.(whole) }),
      onEnd: () => this.#feed.publish(container.id, CONTAINER_EVENT.stopped),
    })
    reserve('container', container, this.#containers)
    this.#feed.publish(container.id, CONTAINER_EVENT.created)
    return { containerId: container.id }
  }
  readonly startContainer: Runtime['startContainer'] = async ({ containerId = '' }) => {
    const container = this.#container(containerId)
    container.start()
    this.#feed.publish(container.id, CONTAINER_EVENT.started)
    return {}
  }
  readonly stopContainer: Runtime['stopContainer'] = async ({ containerId = '', timeout = 0 }) => {
    await this.#containers.get(containerId)?.stop(Number(timeout) * 1000)
    return {}
  }
  readonly removeContainer: Runtime['removeContainer'] = async ({ containerId = '' }) => {
    const container = this.#containers.get(containerId)
    if (container !== undefined) await this.#removeContainer(container)
    return {}
  }
  readonly listContainers: Runtime['listContainers'] = async ({ filter }) => ({
    containers: matching(this.#containers, filter).map((one) => one.summary()),
  })
  readonly containerStatus: Runtime['containerStatus'] = async ({ containerId = '' }) => ({
    status: this.#container(containerId).status(),
    info: new Map(),
  })
  readonly updateContainerResources: Runtime['updateContainerResources'] = async ({ containerId = '', linux = {} }) => {
    this.#container(containerId).updateResources(linux)
    return {}
  }
  readonly reopenContainerLog: Runtime['reopenContainerLog'] = async ({ containerId = '' }) => {
    if (this.#container(containerId).state === CONTAINER_STATE.running) return {}
    throw new GrpcError('unknown', 'container is not running')
  }
  readonly execSync: Runtime['execSync'] = async ({ containerId = '', cmd = [], timeout = 0 }) => {
    const container = this.#container(containerId)
    return container.exec(cmd, Number(timeout), this.#options.exec?.(container, cmd))
  }
  /** Streams need a server, which this runtime does not have. */
  readonly exec: Runtime['exec'] = unimplemented('Exec')
  readonly attach: Runtime['attach'] = unimplemented('Attach')
  readonly portForward: Runtime['portForward'] = unimplemented('PortForward')
  readonly checkpointContainer: Runtime['checkpointContainer'] = unimplemented('CheckpointContainer')
  readonly getContainerEvents: Runtime['getContainerEvents'] = (_, options) => this.#feed.read(options?.signal)

  readonly containerStats: Runtime['containerStats'] = async ({ containerId = '' }) => ({
    stats: containerStatsOf(this.#container(containerId), this.#nowMs()),
  })
  readonly listContainerStats: Runtime['listContainerStats'] = async ({ filter }) => ({
    stats: matching(this.#containers, filter).map((one) => containerStatsOf(one, this.#nowMs())),
  })
  readonly podSandboxStats: Runtime['podSandboxStats'] = async ({ podSandboxId = '' }) => ({
    stats: sandboxStatsOf(this.#sandbox(podSandboxId), this.#containersOf(podSandboxId), this.#nowMs()),
  })
  readonly listPodSandboxStats: Runtime['listPodSandboxStats'] = async ({ filter }) => ({
    stats: matching(this.#sandboxes, filter).map((one) =>
      sandboxStatsOf(one, this.#containersOf(one.id), this.#nowMs()),
    ),
  })

  readonly listImages: Runtime['listImages'] = async ({ filter }) => ({
    images: this.#images.list(filter?.image?.image ?? ''),
  })
  readonly imageStatus: Runtime['imageStatus'] = async ({ image }) => ({
    image: this.#images.find(image?.image ?? '')?.metadata,
    info: new Map(),
  })
  readonly pullImage: Runtime['pullImage'] = async ({ image }) => ({
    imageRef: await this.#images.pull(image?.image ?? ''),
  })
  readonly removeImage: Runtime['removeImage'] = async ({ image }) => {
    this.#images.remove(image?.image ?? '')
    return {}
  }
  readonly imageFsInfo: Runtime['imageFsInfo'] = async () => ({
    imageFilesystems: [filesystemOf(this.#images.usedBytes, this.#nowMs())],
    containerFilesystems: [],
  })

  #nowMs(): number {
    return this.#options.clock.now()
  }

  #newId(): string {
    return this.#options.random.bytes(32).toString('hex')
  }

  #containersOf(sandboxId: string): MemoryContainer[] {
    return [...this.#containers.values()].filter(({ podSandboxId }) => podSandboxId === sandboxId)
  }

  #container(id: string): MemoryContainer {
    const found = this.#containers.get(id)
    if (found !== undefined) return found
    throw new GrpcError('notFound', `an error occurred when try to find container ${JSON.stringify(id)}: not found`)
  }

  #sandbox(id: string, doing: string = 'an error occurred when try to find sandbox'): MemorySandbox {
    const found = this.#sandboxes.get(id)
    if (found !== undefined) return found
    throw new GrpcError('notFound', `${doing}: not found`)
  }

  async #removeContainer(container: MemoryContainer): Promise<void> {
    await container.stop(0)
    if (!this.#containers.has(container.id)) return
    this.#feed.publish(container.id, CONTAINER_EVENT.deleted)
    this.#containers.delete(container.id)
  }

  async #stopSandbox(sandbox: MemorySandbox): Promise<void> {
    await Promise.all(this.#containersOf(sandbox.id).map((one) => one.stop(0)))
    if (sandbox.state === SANDBOX_STATE.notReady) return
    sandbox.state = SANDBOX_STATE.notReady
    this.#addresses.release(sandbox.ip)
    this.#feed.publish(sandbox.id, CONTAINER_EVENT.stopped)
  }

  #event(containerId: string, containerEventType: number): ContainerEventResponse {
    const sandbox = this.#sandboxes.get(this.#containers.get(containerId)?.podSandboxId ?? containerId)
    return {
      containerId,
      containerEventType,
      createdAt: nanosOf(this.#nowMs()),
      podSandboxStatus: sandbox?.status(),
      containersStatuses: this.#containersOf(sandbox?.id ?? '').map((one) => one.status()),
    }
  }
}

interface Named {
  readonly id: string
  readonly reservedName: string
}

/** Names are unique: a repeated call after a lost response gets an error. */
function reserve<T extends Named>(noun: string, one: T, all: Map<string, T>): void {
  const name = JSON.stringify(one.reservedName)
  for (const other of all.values()) {
    if (other.reservedName !== one.reservedName) continue
    const text = `failed to reserve ${noun} name ${name}: name ${name} is reserved for ${JSON.stringify(other.id)}`
    throw new GrpcError('unknown', text)
  }
  all.set(one.id, one)
}

interface Listed {
  readonly id: string
  readonly podSandboxId: string
  readonly state: number
  readonly config: { readonly labels: ReadonlyMap<string, string> }
}

interface Filter {
  readonly id?: string | undefined
  readonly podSandboxId?: string | undefined
  readonly state?: { readonly state?: number | undefined } | undefined
  readonly labelSelector?: ReadonlyMap<string, string> | undefined
}

/** IDs match by prefix. */
function matching<T extends Listed>(all: ReadonlyMap<string, T>, filter: Filter = {}): T[] {
  const { id = '', podSandboxId = '', state, labelSelector = new Map<string, string>() } = filter
  return [...all.values()].filter(
    (one) =>
      one.id.startsWith(id) &&
      one.podSandboxId.startsWith(podSandboxId) &&
      (state === undefined || one.state === (state.state ?? 0)) &&
      [...labelSelector].every(([key, value]) => one.config.labels.get(key) === value),
  )
}
