/**
 * Contract tests of a container runtime; each implementation registers them with `runtimeSuite`. Each test uses a
 * separate pod and ignores other pods in the runtime.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ContainerConfig, ContainerStatus, PodSandboxConfig } from '#apis/wire/cri.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import type { Input } from '#lib/protobuf/message.ts'

import { CONTAINER_EVENT, CONTAINER_STATE, NAMESPACE, SANDBOX_STATE } from './codes.ts'
import type { Runtime } from './runtime.ts'

export interface RuntimeUnderTest {
  readonly runtime: Runtime
  /** An image that is present and has `sh`, `sleep`, `echo` and `cat`. */
  readonly image: string
  /** The parent of the cgroups of all test pods. */
  readonly cgroupParent: string
  /** The parent of all log directories. */
  readonly logDirectory: string
  /** Reads a log file. */
  readonly readLog: (path: string) => Promise<string>
  /** Lets time pass in the runtime: advances its virtual clock, or sleeps. */
  readonly pass: (ms: number) => Promise<void>
  /** False if the runtime is too old for container events. */
  readonly hasEvents: boolean
}

let pods = 0

class Bench {
  readonly tested: RuntimeUnderTest
  readonly uid: string
  readonly sandboxConfig: Input<PodSandboxConfig>

  constructor(tested: RuntimeUnderTest) {
    this.tested = tested
    this.uid = `suite-${process.pid}-${++pods}`
    this.sandboxConfig = {
      metadata: { name: 'web', namespace: 'default', uid: this.uid, attempt: 0 },
      hostname: 'web',
      logDirectory: `${tested.logDirectory}/${this.uid}`,
      labels: new Map([['io.kubernetes.pod.uid', this.uid]]),
      linux: {
        cgroupParent: `${tested.cgroupParent}/${this.uid}`,
        securityContext: { namespaceOptions: { pid: NAMESPACE.container } },
      },
    }
  }

  get runtime(): Runtime {
    return this.tested.runtime
  }

  async sandbox(parts: Input<PodSandboxConfig> = {}): Promise<string> {
    return (await this.runtime.runPodSandbox({ config: { ...this.sandboxConfig, ...parts } })).podSandboxId
  }

  async create(podSandboxId: string, script: string, parts: Input<ContainerConfig> = {}): Promise<string> {
    const config: Input<ContainerConfig> = {
      metadata: { name: 'app', attempt: 0 },
      image: { image: this.tested.image },
      command: ['sh', '-c', script],
      labels: new Map([
        ['io.kubernetes.pod.uid', this.uid],
        ['io.kubernetes.container.name', 'app'],
      ]),
      annotations: new Map([['io.kubernetes.container.restartCount', '0']]),
      logPath: 'app/0.log',
      ...parts,
    }
    const sandboxConfig = this.sandboxConfig
    return (await this.runtime.createContainer({ podSandboxId, config, sandboxConfig })).containerId
  }

  async start(podSandboxId: string, script: string, parts: Input<ContainerConfig> = {}): Promise<string> {
    const containerId = await this.create(podSandboxId, script, parts)
    await this.runtime.startContainer({ containerId })
    return containerId
  }

  async status(containerId: string): Promise<ContainerStatus> {
    const { status } = await this.runtime.containerStatus({ containerId })
    assert.ok(status)
    return status
  }

  async becomes(containerId: string, state: number): Promise<ContainerStatus> {
    for (let left = 200; left > 0; left--) {
      const status = await this.status(containerId)
      if (status.state === state) return status
      await this.tested.pass(100)
    }
    return assert.fail(`container ${containerId} has not come to state ${state}`)
  }

  async refused(call: () => Promise<unknown>): Promise<GrpcError> {
    const error: unknown = await call().then(
      () => assert.fail('the call should have failed'),
      (cause: unknown) => cause,
    )
    assert.ok(error instanceof GrpcError)
    return error
  }

  async leave(): Promise<void> {
    const filter = { labelSelector: new Map([['io.kubernetes.pod.uid', this.uid]]) }
    for (const { id: podSandboxId } of (await this.runtime.listPodSandbox({ filter })).items) {
      await this.runtime.stopPodSandbox({ podSandboxId })
      await this.runtime.removePodSandbox({ podSandboxId })
    }
  }
}

/** `use` starts the runtime, passes it to `run` and stops it. */
export function runtimeSuite(
  name: string,
  use: (run: (tested: RuntimeUnderTest) => Promise<void>) => Promise<void>,
): void {
  const check = (testName: string, run: (bench: Bench) => Promise<void>): void => {
    it(testName, async () => {
      await use(async (tested) => {
        const bench = new Bench(tested)
        try {
          await run(bench)
        } finally {
          await bench.leave()
        }
      })
    })
  }
  describe(`CRI runtime (${name})`, () => {
    sandboxes(check)
    containers(check)
    ends(check)
    commands(check)
    refusals(check)
    images(check)
    figures(check)
  })
}

type Check = (testName: string, run: (bench: Bench) => Promise<void>) => void

function sandboxes(check: Check): void {
  check('runs sandboxes with distinct addresses, and stops and removes them twice without an error', async (bench) => {
    const { runtime } = bench
    const podSandboxId = await bench.sandbox()
    const { status } = await runtime.podSandboxStatus({ podSandboxId })
    assert.equal(status?.state, SANDBOX_STATE.ready)
    assert.match(status?.network?.ip ?? '', /^\d+\.\d+\.\d+\.\d+$/)
    assert.equal(status?.metadata?.uid, bench.uid)
    assert.equal(status?.linux?.namespaces?.options?.pid, NAMESPACE.container)
    for (let twice = 2; twice > 0; twice--) await runtime.stopPodSandbox({ podSandboxId })
    const after = await runtime.podSandboxStatus({ podSandboxId })
    assert.equal(after.status?.state, SANDBOX_STATE.notReady)
    for (let twice = 2; twice > 0; twice--) await runtime.removePodSandbox({ podSandboxId })
    assert.equal((await bench.refused(() => runtime.podSandboxStatus({ podSandboxId }))).code, 'notFound')
  })

  check('lists sandboxes by label and by state', async (bench) => {
    const { runtime } = bench
    const podSandboxId = await bench.sandbox()
    const labelSelector = new Map([['io.kubernetes.pod.uid', bench.uid]])
    const ids = async (state?: number): Promise<string[]> => {
      const filter = { labelSelector, ...(state === undefined ? {} : { state: { state } }) }
      return (await runtime.listPodSandbox({ filter })).items.map(({ id }) => id)
    }
    assert.deepEqual(await ids(), [podSandboxId])
    assert.deepEqual(await ids(SANDBOX_STATE.ready), [podSandboxId])
    assert.deepEqual(await ids(SANDBOX_STATE.notReady), [])
    await runtime.stopPodSandbox({ podSandboxId })
    assert.deepEqual(await ids(SANDBOX_STATE.notReady), [podSandboxId])
  })

  check('rejects a second sandbox of the same attempt, and accepts the next attempt', async (bench) => {
    const podSandboxId = await bench.sandbox()
    const error = await bench.refused(() => bench.sandbox())
    const name = `web_default_${bench.uid}_0`
    assert.equal(
      error.message,
      `failed to reserve sandbox name "${name}": name "${name}" is reserved for "${podSandboxId}"`,
    )
    const metadata = { ...bench.sandboxConfig.metadata, attempt: 1 }
    assert.notEqual(await bench.sandbox({ metadata }), podSandboxId)
  })
}

function containers(check: Check): void {
  check('runs a container from created to running to exited, with times, exit code and log', async (bench) => {
    const sandbox = await bench.sandbox()
    const id = await bench.create(sandbox, 'echo hello; sleep 1; exit 3')
    const created = await bench.status(id)
    assert.equal(created.state, CONTAINER_STATE.created)
    assert.equal(Number(created.startedAt), 0)
    await bench.runtime.startContainer({ containerId: id })
    const running = await bench.status(id)
    assert.equal(running.state, CONTAINER_STATE.running)
    assert.ok(BigInt(running.startedAt) >= BigInt(created.createdAt))
    assert.equal(Number(running.finishedAt), 0)
    const exited = await bench.becomes(id, CONTAINER_STATE.exited)
    assert.deepEqual([exited.exitCode, exited.reason], [3, 'Error'])
    assert.ok(BigInt(exited.finishedAt) > BigInt(exited.startedAt))
    assert.equal(exited.logPath, `${bench.tested.logDirectory}/${bench.uid}/app/0.log`)
    assert.match(
      await bench.tested.readLog(exited.logPath),
      /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) stdout F hello\n$/,
    )
  })

  check('reports Completed for exit code 0', async (bench) => {
    const id = await bench.start(await bench.sandbox(), 'true')
    const { exitCode, reason } = await bench.becomes(id, CONTAINER_STATE.exited)
    assert.deepEqual([exitCode, reason], [0, 'Completed'])
  })

  check('keeps labels, annotations and attempts, and lists by label, sandbox, state and id', async (bench) => {
    const { runtime } = bench
    const podSandboxId = await bench.sandbox()
    const first = await bench.start(podSandboxId, 'sleep 600')
    const second = await bench.create(podSandboxId, 'sleep 600', { metadata: { name: 'app', attempt: 1 } })
    const labelSelector = new Map([['io.kubernetes.pod.uid', bench.uid]])
    const all = (await runtime.listContainers({ filter: { labelSelector } })).containers
    assert.deepEqual(all.map(({ id }) => id).sort(), [first, second].sort())
    const one = all.find(({ id }) => id === second)
    assert.equal(one?.podSandboxId, podSandboxId)
    assert.deepEqual({ ...one?.metadata }, { name: 'app', attempt: 1 })
    assert.equal(one?.annotations.get('io.kubernetes.container.restartCount'), '0')
    const state = { state: CONTAINER_STATE.created }
    const created = (await runtime.listContainers({ filter: { podSandboxId, state } })).containers
    assert.deepEqual(
      created.map(({ id }) => id),
      [second],
    )
    assert.deepEqual(
      (await runtime.listContainers({ filter: { id: first } })).containers.map(({ id }) => id),
      [first],
    )
  })

  check('sends container events as they happen', async (bench) => {
    if (!bench.tested.hasEvents) return
    const stop = new AbortController()
    const events = bench.runtime.getContainerEvents({}, { signal: stop.signal })[Symbol.asyncIterator]()
    const first = events.next()
    const id = await bench.start(await bench.sandbox(), 'exit 4')
    await bench.becomes(id, CONTAINER_STATE.exited)
    const seen: number[] = []
    for (let next = await first; next.done !== true; next = await events.next()) {
      const { containerId, containerEventType, containersStatuses } = next.value
      if (containerId !== id) continue
      seen.push(containerEventType)
      if (containerEventType !== CONTAINER_EVENT.stopped) continue
      assert.equal(containersStatuses.find((one) => one.id === id)?.exitCode, 4)
      break
    }
    assert.deepEqual(seen, [CONTAINER_EVENT.created, CONTAINER_EVENT.started, CONTAINER_EVENT.stopped])
    stop.abort()
  })
}

function ends(check: Check): void {
  check('kills a container that ignores SIGTERM after its grace period', async (bench) => {
    const id = await bench.start(await bench.sandbox(), "trap '' TERM; while true; do sleep 1; done")
    await bench.tested.pass(300)
    const stopped = bench.runtime.stopContainer({ containerId: id, timeout: 1 })
    await bench.tested.pass(3000)
    await stopped
    const { state, exitCode, reason } = await bench.status(id)
    assert.deepEqual([state, exitCode, reason], [CONTAINER_STATE.exited, 137, 'Error'])
    await bench.runtime.stopContainer({ containerId: id, timeout: 1 })
  })

  check('removes a running container, and a missing one without an error', async (bench) => {
    const containerId = await bench.start(await bench.sandbox(), 'sleep 600')
    for (let twice = 2; twice > 0; twice--) await bench.runtime.removeContainer({ containerId })
    const error = await bench.refused(() => bench.runtime.containerStatus({ containerId }))
    assert.equal(error.code, 'notFound')
  })

  check('stops the containers of a stopped sandbox', async (bench) => {
    const podSandboxId = await bench.sandbox()
    const id = await bench.start(podSandboxId, 'sleep 600')
    await bench.runtime.stopPodSandbox({ podSandboxId })
    const { state, exitCode } = await bench.status(id)
    assert.deepEqual([state, exitCode], [CONTAINER_STATE.exited, 137])
  })
}

function commands(check: Check): void {
  check('runs commands in a container and returns their output and exit code', async (bench) => {
    const containerId = await bench.start(await bench.sandbox(), 'sleep 600')
    const result = await bench.runtime.execSync({ containerId, cmd: ['sh', '-c', 'echo out; exit 3'], timeout: 10 })
    assert.deepEqual([result.stdout.toString(), result.exitCode], ['out\n', 3])
  })

  check('aborts a command that exceeds its timeout', async (bench) => {
    const containerId = await bench.start(await bench.sandbox(), 'sleep 600')
    const refusal = bench.refused(() => bench.runtime.execSync({ containerId, cmd: ['sleep', '20'], timeout: 1 }))
    await bench.tested.pass(2000)
    const { code, message } = await refusal
    assert.deepEqual(
      [code, message],
      ['deadlineExceeded', 'failed to exec in container: timeout 1s exceeded: context deadline exceeded'],
    )
  })
}

function refusals(check: Check): void {
  check('names the unknown container or sandbox in its error', async (bench) => {
    const { runtime } = bench
    const containerId = 'no-such'
    const notFound = (text: string): [string, string] => ['notFound', text]
    const container = notFound('an error occurred when try to find container "no-such": not found')
    const table: [() => Promise<unknown>, [string, string]][] = [
      [() => runtime.containerStatus({ containerId }), container],
      [
        () => runtime.podSandboxStatus({ podSandboxId: 'no-such' }),
        notFound('an error occurred when try to find sandbox: not found'),
      ],
      [() => bench.create('no-such', 'true'), notFound('failed to find sandbox id "no-such": not found')],
    ]
    for (const [call, expected] of table) {
      const { code, message } = await bench.refused(call)
      assert.deepEqual([code, message], expected)
    }
    assert.equal((await bench.refused(() => runtime.startContainer({ containerId }))).code, 'notFound')
    await runtime.stopPodSandbox({ podSandboxId: 'no-such' })
    await runtime.removePodSandbox({ podSandboxId: 'no-such' })
    await runtime.removeContainer({ containerId })
  })

  check('rejects a second start of a container, and commands in one that does not run', async (bench) => {
    const containerId = await bench.start(await bench.sandbox(), 'true')
    await bench.becomes(containerId, CONTAINER_STATE.exited)
    const again = await bench.refused(() => bench.runtime.startContainer({ containerId }))
    assert.match(again.message, /container is in CONTAINER_EXITED state$/)
    const exec = await bench.refused(() => bench.runtime.execSync({ containerId, cmd: ['true'], timeout: 1 }))
    assert.equal(exec.message, 'failed to exec in container: container is in CONTAINER_EXITED state')
  })

  check('rejects a container whose image is missing', async (bench) => {
    const sandbox = await bench.sandbox()
    const error = await bench.refused(() => bench.create(sandbox, 'true', { image: { image: 'no-such:v1' } }))
    assert.match(error.message, /no-such:v1": .*not found/)
  })
}

function images(check: Check): void {
  check('finds an image by name and by id, and returns nothing for a missing one', async (bench) => {
    const { runtime, tested } = bench
    const byName = (await runtime.imageStatus({ image: { image: tested.image } })).image
    assert.match(byName?.id ?? '', /^sha256:[0-9a-f]{64}$/)
    assert.ok(Number(byName?.size) > 0)
    const byId = (await runtime.imageStatus({ image: { image: byName?.id ?? '' } })).image
    assert.deepEqual(byId?.repoTags, byName?.repoTags)
    assert.equal((await runtime.imageStatus({ image: { image: 'no-such:v1' } })).image, undefined)
    const { images: listed } = await runtime.listImages({})
    assert.ok(listed.some(({ id }) => id === byName?.id))
    await runtime.removeImage({ image: { image: 'no-such:v1' } })
  })

  check('reports neither uid nor username for an image without USER', async ({ runtime, tested }) => {
    const { image } = await runtime.imageStatus({ image: { image: tested.image } })
    assert.deepEqual([image?.uid, image?.username], [undefined, ''])
  })

  check('reports the image of a container in its status', async (bench) => {
    const id = await bench.create(await bench.sandbox(), 'true')
    const status = await bench.status(id)
    const image = (await bench.runtime.imageStatus({ image: { image: bench.tested.image } })).image
    assert.ok([image?.id, ...(image?.repoDigests ?? [])].includes(status.imageRef))
    assert.ok(image?.repoTags.includes(status.image?.image ?? ''))
  })
}

function figures(check: Check): void {
  check('is ready, and reports its version and file systems', async ({ runtime }) => {
    const version = await runtime.version({})
    assert.deepEqual([version.version, version.runtimeApiVersion], ['0.1.0', 'v1'])
    const conditions = (await runtime.status({})).status?.conditions ?? []
    assert.deepEqual(
      conditions.filter(({ status }) => status).map(({ type }) => type),
      ['RuntimeReady', 'NetworkReady'],
    )
    const { imageFilesystems } = await runtime.imageFsInfo({})
    assert.notEqual(imageFilesystems[0]?.fsId?.mountpoint ?? '', '')
  })

  check('reports the usage of a container', async (bench) => {
    const containerId = await bench.start(await bench.sandbox(), 'sleep 600')
    await bench.tested.pass(100)
    const { stats } = await bench.runtime.containerStats({ containerId })
    assert.equal(stats?.attributes?.id, containerId)
    assert.ok(Number(stats?.cpu?.usageCoreNanoSeconds?.value) > 0)
    assert.ok(Number(stats?.memory?.workingSetBytes?.value) > 0)
    const filter = { labelSelector: new Map([['io.kubernetes.pod.uid', bench.uid]]) }
    const listed = (await bench.runtime.listContainerStats({ filter })).stats
    assert.deepEqual(
      listed.map(({ attributes }) => attributes?.id),
      [containerId],
    )
  })
}
