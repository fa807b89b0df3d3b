/** A container of the in-memory runtime: it is created, runs as long as its command would, and exits. */
import { type Container, ContainerConfig, type ContainerStatus, LinuxContainerResources } from '#apis/wire/cri.ts'
import { CONTAINER_STATE } from '#cri/codes.ts'
import type { Clock, Timer } from '#lib/clock.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import type { Input } from '#lib/protobuf/message.ts'
import { timeText } from '#meta/time.ts'
import { readScript, type Script } from '#simulated-node/script.ts'

import type { KeptImage } from './memory-images.ts'
import type { MemorySandbox } from './memory-sandbox.ts'
import { nanosOf } from './nanos.ts'

export interface ContainerBehavior {
  readonly script: Script
  /** The runtime's error if it cannot be started. */
  readonly startError?: string
  /** Time to stop after SIGTERM; Infinity: it ignores the signal and is killed. */
  readonly stopMs: number
  readonly stoppedCode: number
}

export interface ExecBehavior {
  readonly stdout?: string
  readonly stderr?: string
  readonly exitCode?: number
  readonly runMs?: number
}

const SIGTERM_CODE = 143
const SIGKILL_CODE = 137
const SERVES: Script = { lines: [], runMs: Infinity, exitCode: 0 }

/** Derived from the command, or the image's; an unknown command is a server that runs until it is stopped. */
export function behaviorOf(
  { command, args }: ContainerConfig,
  { entrypoint = [], command: own = [] }: KeptImage,
): ContainerBehavior {
  const words = command.length > 0 ? [...command, ...args] : [...entrypoint, ...(args.length > 0 ? args : own)]
  return { script: readScript(words) ?? SERVES, stopMs: 0, stoppedCode: SIGTERM_CODE }
}

export interface MemoryContainerOptions {
  readonly sandbox: MemorySandbox
  readonly config: Input<ContainerConfig>
  readonly image: KeptImage
  readonly clock: Clock
  readonly logDirectory: string
  readonly writeLog: ((path: string, line: string) => void) | undefined
  readonly behavior: (config: ContainerConfig) => ContainerBehavior
  readonly onEnd: () => void
}

export class MemoryContainer {
  readonly id: string
  readonly podSandboxId: string
  readonly config: ContainerConfig
  state: number = CONTAINER_STATE.created
  startedMs = 0
  readonly #options: MemoryContainerOptions
  readonly #behavior: ContainerBehavior
  readonly #createdMs: number
  readonly #timers = new Set<Timer>()
  readonly #lines: string[] = []
  #resources: LinuxContainerResources | undefined
  #finishedMs = 0
  #exitCode = 0
  #reason = ''
  #ended: Promise<void> | undefined
  #resolveEnded: () => void = () => undefined

  constructor(id: string, options: MemoryContainerOptions) {
    this.id = id
    this.podSandboxId = options.sandbox.id
    this.config = ContainerConfig.decode(ContainerConfig.encode(options.config))
    this.#options = options
    this.#behavior = options.behavior(this.config)
    this.#createdMs = options.clock.now()
    this.#resources = this.config.linux?.resources
  }

  get reservedName(): string {
    const { name = '', attempt = 0 } = this.config.metadata ?? {}
    const { name: pod = '', namespace = '', uid = '' } = this.#options.sandbox.config.metadata ?? {}
    return [name, pod, namespace, uid, attempt].join('_')
  }

  start(): void {
    if (this.state !== CONTAINER_STATE.created) {
      const text = `failed to set starting state for container ${JSON.stringify(this.id)}: container is in ${this.#stateText()} state`
      throw new GrpcError('unknown', text)
    }
    this.startedMs = this.#options.clock.now()
    if (this.#behavior.startError !== undefined) {
      this.#finish({ exitCode: 128, reason: 'StartError' })
      throw new GrpcError('unknown', this.#behavior.startError)
    }
    this.state = CONTAINER_STATE.running
    this.#ended = new Promise((resolve) => (this.#resolveEnded = resolve))
    this.#play(this.#behavior.script)
  }

  /**
   * Stops the container and kills it after `graceMs`; resolves when it has ended. A container that was not started is
   * unchanged.
   */
  async stop(graceMs: number): Promise<void> {
    if (this.state !== CONTAINER_STATE.running) return
    const { stopMs, stoppedCode } = this.#behavior
    const isKilled = stopMs > graceMs || graceMs === 0
    const exitCode = isKilled ? SIGKILL_CODE : stoppedCode
    const waitMs = Math.min(stopMs, graceMs)
    if (waitMs === 0) this.end({ exitCode })
    else this.#later(waitMs, () => this.end({ exitCode }))
    await this.#ended
  }

  end(how: { readonly exitCode: number; readonly reason?: string }): void {
    if (this.state !== CONTAINER_STATE.running) return
    this.#finish(how)
    this.#resolveEnded()
    this.#options.onEnd()
  }

  updateResources(resources: Input<LinuxContainerResources>): void {
    this.#resources = LinuxContainerResources.decode(LinuxContainerResources.encode(resources))
  }

  lines(): readonly string[] {
    return this.#lines
  }

  /** Fails like containerd for a missing program and for a timeout. */
  async exec(
    command: readonly string[],
    timeoutSeconds: number,
    overridden: ExecBehavior | undefined,
  ): Promise<{ stdout: Buffer; stderr: Buffer; exitCode: number }> {
    if (this.state !== CONTAINER_STATE.running) {
      throw new GrpcError('unknown', `failed to exec in container: container is in ${this.#stateText()} state`)
    }
    const { stdout = '', stderr = '', exitCode = 0, runMs = 0 } = overridden ?? execOf(command)
    const isLate = timeoutSeconds > 0 && runMs > timeoutSeconds * 1000
    const waitMs = isLate ? timeoutSeconds * 1000 : runMs
    if (waitMs > 0) {
      const waited = new Promise<void>((resolve) => this.#later(waitMs, resolve))
      await Promise.race([waited, this.#ended])
    }
    if (isLate && this.state === CONTAINER_STATE.running) {
      const text = `failed to exec in container: timeout ${timeoutSeconds}s exceeded: context deadline exceeded`
      throw new GrpcError('deadlineExceeded', text)
    }
    const isKilled = this.state !== CONTAINER_STATE.running
    return { stdout: Buffer.from(stdout), stderr: Buffer.from(stderr), exitCode: isKilled ? SIGKILL_CODE : exitCode }
  }

  summary(): Container {
    const { id, podSandboxId, state } = this
    const { metadata, labels, annotations } = this.config
    return { id, podSandboxId, metadata, state, labels, annotations, ...this.#imageFacts(), createdAt: this.#created() }
  }

  status(): ContainerStatus {
    const { podSandboxId: _, ...summary } = this.summary()
    const isOver = this.state === CONTAINER_STATE.exited
    return {
      ...summary,
      startedAt: this.startedMs === 0 ? 0 : nanosOf(this.startedMs),
      finishedAt: isOver ? nanosOf(this.#finishedMs) : 0,
      exitCode: this.#exitCode,
      reason: this.#reason,
      message: this.#reason === 'StartError' ? (this.#behavior.startError ?? '') : '',
      mounts: this.config.mounts,
      logPath: this.#logPath(),
      resources: this.#resources === undefined ? undefined : { linux: this.#resources, windows: undefined },
      user: { linux: this.#user() },
      stopSignal: this.config.stopSignal,
    }
  }

  #user(): { uid: number | bigint; gid: number | bigint; supplementalGroups: (number | bigint)[] } {
    const { runAsUser, runAsGroup, supplementalGroups = [] } = this.config.linux?.securityContext ?? {}
    return { uid: runAsUser?.value ?? 0, gid: runAsGroup?.value ?? 0, supplementalGroups }
  }

  #imageFacts(): Pick<Container, 'image' | 'imageRef' | 'imageId'> {
    const { metadata } = this.#options.image
    const image = this.config.image
    return {
      image: image && { ...image, image: metadata.repoTags[0] ?? image.image },
      imageRef: metadata.repoDigests[0] ?? metadata.id,
      imageId: metadata.id,
    }
  }

  #created(): bigint {
    return nanosOf(this.#createdMs)
  }

  #logPath(): string {
    return this.config.logPath === '' ? '' : `${this.#options.logDirectory}/${this.config.logPath}`
  }

  #finish({ exitCode, reason }: { readonly exitCode: number; readonly reason?: string }): void {
    for (const timer of this.#timers) timer.cancel()
    this.#timers.clear()
    this.state = CONTAINER_STATE.exited
    this.#finishedMs = this.#options.clock.now()
    this.#exitCode = exitCode
    this.#reason = reason ?? (exitCode === 0 ? 'Completed' : 'Error')
  }

  #play({ lines, runMs, exitCode, repeated }: Script): void {
    for (const { afterMs, text } of lines) this.#later(afterMs, () => this.#writeLine(text))
    if (repeated !== undefined) this.#repeat(repeated.lines, repeated.everyMs)
    if (runMs !== Infinity) this.#later(runMs, () => this.end({ exitCode }))
  }

  #repeat(lines: Script['lines'], everyMs: number): void {
    for (const { afterMs, text } of lines) this.#later(afterMs, () => this.#writeLine(text))
    this.#later(everyMs, () => this.#repeat(lines, everyMs))
  }

  #writeLine(text: string): void {
    const time = timeText({ seconds: Math.floor(this.#options.clock.now() / 1000), nanos: 0 }).replace('Z', '')
    const millis = String(Math.floor(this.#options.clock.now() % 1000)).padStart(3, '0')
    this.#lines.push(text)
    if (this.#lines.length > MAX_LINES) this.#lines.shift()
    if (this.config.logPath !== '')
      this.#options.writeLog?.(this.#logPath(), `${time}.${millis}000000Z stdout F ${text}\n`)
  }

  #later(ms: number, task: () => void): void {
    const timer = this.#options.clock.after(ms, () => {
      this.#timers.delete(timer)
      task()
    })
    this.#timers.add(timer)
  }

  #stateText(): string {
    return ['CONTAINER_CREATED', 'CONTAINER_RUNNING', 'CONTAINER_EXITED'][this.state] ?? 'CONTAINER_UNKNOWN'
  }
}

/** Maximum number of lines kept. */
const MAX_LINES = 1000

function execOf(command: readonly string[]): ExecBehavior {
  const script = readScript(command)
  if (script === undefined) {
    const text = `failed to exec in container: failed to start exec: OCI runtime exec failed: exec failed: unable to start container process: exec: ${JSON.stringify(command[0] ?? '')}: executable file not found in $PATH: unknown`
    throw new GrpcError('unknown', text)
  }
  const { lines, exitCode, runMs } = script
  return { stdout: lines.map(({ text }) => `${text}\n`).join(''), exitCode, runMs }
}
