/** A container that never runs, and what is told of it: created, running for as long as its command says, exited. */
import type { Clock, Timer } from '#lib/clock.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import type { Input } from '#lib/protobuf/message.ts'
import { timeText } from '#meta/time.ts'

import { CONTAINER_STATE } from '../cri/codes.ts'
import {
  type Container,
  type ContainerConfig,
  containerConfig,
  type ContainerStatus,
} from '../cri/container-messages.ts'
import { nanosOf } from '../cri/nanos.ts'
import { type LinuxContainerResources, linuxContainerResources } from '../cri/sandbox-messages.ts'
import { readScript, type Script } from '../simulated/script.ts'
import type { KeptImage } from './memory-images.ts'
import type { MemorySandbox } from './memory-sandbox.ts'

export interface Conduct {
  readonly script: Script
  /** What the runtime says when it cannot start it. */
  readonly startError?: string
  /** How long it takes to end when it is told to; Infinity: it does not listen, and is killed. */
  readonly stopMs: number
  readonly stoppedCode: number
}

export interface ExecConduct {
  readonly stdout?: string
  readonly stderr?: string
  readonly exitCode?: number
  readonly runMs?: number
}

const SIGTERM_CODE = 143
const SIGKILL_CODE = 137
const SERVES: Script = { lines: [], runMs: Infinity, exitCode: 0 }

/** As its command says, or its image's; whatever is not understood is a server that ends when it is told to. */
export function conductOf(
  { command, args }: ContainerConfig,
  { entrypoint = [], command: own = [] }: KeptImage,
): Conduct {
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
  readonly conduct: (config: ContainerConfig) => Conduct
  readonly onEnd: () => void
}

export class MemoryContainer {
  readonly id: string
  readonly podSandboxId: string
  readonly config: ContainerConfig
  state: number = CONTAINER_STATE.created
  startedMs = 0
  readonly #options: MemoryContainerOptions
  readonly #conduct: Conduct
  readonly #createdMs: number
  readonly #timers = new Set<Timer>()
  readonly #lines: string[] = []
  #resources: LinuxContainerResources | undefined
  #finishedMs = 0
  #exitCode = 0
  #reason = ''
  #ended: Promise<void> | undefined
  #tellEnded: () => void = () => undefined

  constructor(id: string, options: MemoryContainerOptions) {
    this.id = id
    this.podSandboxId = options.sandbox.id
    this.config = containerConfig.decode(containerConfig.encode(options.config))
    this.#options = options
    this.#conduct = options.conduct(this.config)
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
    if (this.#conduct.startError !== undefined) {
      this.#finish({ exitCode: 128, reason: 'StartError' })
      throw new GrpcError('unknown', this.#conduct.startError)
    }
    this.state = CONTAINER_STATE.running
    this.#ended = new Promise((resolve) => (this.#tellEnded = resolve))
    this.#play(this.#conduct.script)
  }

  /** Told to stop now and killed after `graceMs`; resolves when it has ended. One that never started stays as it is. */
  async stop(graceMs: number): Promise<void> {
    if (this.state !== CONTAINER_STATE.running) return
    const { stopMs, stoppedCode } = this.#conduct
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
    this.#tellEnded()
    this.#options.onEnd()
  }

  updateResources(resources: Input<LinuxContainerResources>): void {
    this.#resources = linuxContainerResources.decode(linuxContainerResources.encode(resources))
  }

  lines(): readonly string[] {
    return this.#lines
  }

  /** Fails as containerd's does: for a program that is not there, and when it takes longer than it may. */
  async exec(
    command: readonly string[],
    timeoutSeconds: number,
    told: ExecConduct | undefined,
  ): Promise<{ stdout: Buffer; stderr: Buffer; exitCode: number }> {
    if (this.state !== CONTAINER_STATE.running) {
      throw new GrpcError('unknown', `failed to exec in container: container is in ${this.#stateText()} state`)
    }
    const { stdout = '', stderr = '', exitCode = 0, runMs = 0 } = told ?? execOf(command)
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
      message: this.#reason === 'StartError' ? (this.#conduct.startError ?? '') : '',
      mounts: this.config.mounts,
      logPath: this.#logPath(),
      resources: this.#resources === undefined ? undefined : { linux: this.#resources },
      user: { linux: this.#user() },
      stopSignal: this.config.stopSignal,
    }
  }

  #user(): { uid: number | bigint; gid: number | bigint; supplementalGroups: (number | bigint)[] } {
    const { runAsUser, runAsGroup, supplementalGroups = [] } = this.config.linux?.securityContext ?? {}
    return { uid: runAsUser?.value ?? 0, gid: runAsGroup?.value ?? 0, supplementalGroups }
  }

  #imageFacts(): Pick<Container, 'image' | 'imageRef' | 'imageId'> {
    const { told } = this.#options.image
    const image = this.config.image
    return {
      image: image && { ...image, image: told.repoTags[0] ?? image.image },
      imageRef: told.repoDigests[0] ?? told.id,
      imageId: told.id,
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

  #play({ lines, runMs, exitCode, again }: Script): void {
    for (const { afterMs, text } of lines) this.#later(afterMs, () => this.#say(text))
    if (again !== undefined) this.#repeat(again.lines, again.everyMs)
    if (runMs !== Infinity) this.#later(runMs, () => this.end({ exitCode }))
  }

  #repeat(lines: Script['lines'], everyMs: number): void {
    for (const { afterMs, text } of lines) this.#later(afterMs, () => this.#say(text))
    this.#later(everyMs, () => this.#repeat(lines, everyMs))
  }

  #say(text: string): void {
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

/** Of a container that writes for ever, so much is kept. */
const MAX_LINES = 1000

function execOf(command: readonly string[]): ExecConduct {
  const script = readScript(command)
  if (script === undefined) {
    const text = `failed to exec in container: failed to start exec: OCI runtime exec failed: exec failed: unable to start container process: exec: ${JSON.stringify(command[0] ?? '')}: executable file not found in $PATH: unknown`
    throw new GrpcError('unknown', text)
  }
  const { lines, exitCode, runMs } = script
  return { stdout: lines.map(({ text }) => `${text}\n`).join(''), exitCode, runMs }
}
