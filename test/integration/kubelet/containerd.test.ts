/**
 * Tests a private containerd on this machine: it passes the runtime tests, survives kills, and leaves nothing behind.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { containerdIn, processes } from '#containerd/process-table.ts'
import { findPrograms } from '#containerd/programs.ts'
import { type Containerd, findContainerd } from '#containerd/start.ts'
import { removeContainerd, stopContainerd } from '#containerd/stop.ts'
import { CONTAINER_STATE, SANDBOX_STATE } from '#cri/codes.ts'
import { runtimeSuite } from '#cri/runtime.suite.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'

import { type Bed, createBed, IMAGE, PROGRAMS, tracesOf, whyNoContainerd } from './containerd-bed.ts'

const missing = await whyNoContainerd()
if (missing !== undefined) process.stderr.write(`containerd: skipping, ${missing}\n`)

const NOTHING = {
  processes: [],
  mounts: [],
  cgroups: [],
  links: [],
  nat: [],
  results: [],
  sockets: [],
  folders: [],
  strays: [],
}

describe('containerd that the cluster runs', { skip: missing ?? false }, () => {
  describe('as a runtime', () => {
    let bed: Bed
    let containerd: Containerd
    const closing = new AsyncDisposableStack()
    before(async () => {
      bed = createBed()
      containerd = await bed.start(closing)
    })
    after(async () => {
      await tracesOf(bed)
      await closing.disposeAsync()
      await bed[Symbol.asyncDispose]()
      assert.deepEqual(await tracesOf(bed), NOTHING)
    })

    runtimeSuite('containerd', async (run) => {
      const { version } = await findPrograms(process.env, PROGRAMS)
      await run({
        runtime: containerd.runtime,
        image: IMAGE,
        cgroupParent: containerd.cgroupParent,
        logDirectory: join(bed.options.dataDir, 'logs'),
        readLog: (path) => readFile(path, 'utf8'),
        pass: (ms) => sleep(realClock, ms),
        hasEvents: !version.startsWith('1.6.'),
      })
    })

    it('is found at its socket, and only while its server runs', async () => {
      const tools = { clock: realClock, random: secureRandom }
      assert.equal(await findContainerd(tools, bed.places.socket), containerd.endpoint)
      assert.equal(await findContainerd(tools, `${bed.places.socket}.gone`), undefined)
    })

    it('gives pods addresses of the node, connects them, and reaps their processes', async () => {
      const pod = await startPod(containerd, bed, { script: 'while true; do echo hello | nc -l -p 80; done' })
      const other = await startPod(containerd, bed, { script: 'sleep 600', sharesProcesses: true })
      const { status } = await containerd.runtime.podSandboxStatus({ podSandboxId: pod.sandbox })
      const ip = status?.network?.ip ?? ''
      assert.ok(ip.startsWith((bed.options.podCidrs?.[0] ?? '').replace(/0\/24$/, '')))
      const orphan = `(sh -c 'sleep 0.1 &')`
      const cmd = ['sh', '-c', `nc ${ip} 80 </dev/null; ${orphan}; sleep 0.5; cat /proc/1/cmdline /proc/[0-9]*/stat`]
      const said = await containerd.runtime.execSync({ containerId: other.container, cmd, timeout: 20 })
      assert.match(said.stdout.toString(), /^hello\n\/pause\0/)
      assert.doesNotMatch(said.stdout.toString(), /\) Z/)
      for (const { sandbox } of [pod, other]) await removePod(containerd, sandbox)
    })
  })

  it('gives pods other addresses when the pod CIDR of the node changes', async () => {
    await using bed = createBed()
    await using closing = new AsyncDisposableStack()
    const containerd = await bed.start(closing)
    await startPod(containerd, bed, { script: 'sleep 600' })
    await containerd.setPodCidrs(['10.250.250.0/24'])
    const isKnown = async (): Promise<boolean> =>
      [...(await containerd.runtime.status({ verbose: true })).info.values()].some((text) =>
        text.includes('10.250.250.0'),
      )
    for (let tries = 100; tries > 0 && !(await isKnown()); tries--) await sleep(realClock, 50)
    const { sandbox } = await startPod(containerd, bed, { script: 'sleep 600' })
    const { status } = await containerd.runtime.podSandboxStatus({ podSandboxId: sandbox })
    assert.match(status?.network?.ip ?? '', /^10\.250\.250\./)
  })

  it('restarts after a kill of containerd or hyperkube without effect on containers, and is removed completely', async () => {
    await using bed = createBed()
    let first: { pod: Pod; pid: number }
    {
      await using closing = new AsyncDisposableStack()
      const containerd = await bed.start(closing)
      const pod = await startPod(containerd, bed, { script: 'sleep 600', hostPort: true })
      first = { pod, pid: await pidOf(containerd, pod) }
      const traces = await tracesOf(bed)
      for (const kind of ['processes', 'mounts', 'cgroups', 'links', 'nat', 'results', 'sockets', 'folders'])
        assert.notDeepEqual(traces[kind], [], kind)
      for (let round = 0; round < 3; round++) {
        const [killed = 0] = containerdIn(await processes(), bed.places)
        process.kill(killed, 'SIGKILL')
        await comesBack(bed, killed)
        assert.equal(await pidOf(containerd, pod), first.pid)
      }
    }
    // As if we had been killed: containerd is still running.
    const { containerd: program, path } = await findPrograms(process.env, PROGRAMS)
    spawn(program, ['--config', bed.places.configFile], {
      detached: true,
      stdio: 'ignore',
      env: { PATH: path },
    }).unref()
    {
      await using closing = new AsyncDisposableStack()
      const containerd = await bed.start(closing)
      assert.equal(containerdIn(await processes(), bed.places).length, 1)
      assert.equal(await pidOf(containerd, first.pod), first.pid)
      const { exitCode } = await containerd.runtime.execSync({
        containerId: first.pod.container,
        cmd: ['true'],
        timeout: 9,
      })
      assert.equal(exitCode, 0)
    }
    assert.equal(await bed.remove(), true)
    assert.deepEqual(await tracesOf(bed), NOTHING)
    assert.equal(await bed.remove(), false)
  })

  it('stops its pods and keeps its images, also if containerd does not run', async () => {
    await using bed = createBed()
    await using closing = new AsyncDisposableStack()
    {
      await using running = new AsyncDisposableStack()
      const containerd = await bed.start(running)
      await startPod(containerd, bed, { script: 'sleep 600' })
    }
    assert.equal(await stopContainerd(bed.options), true)
    const { processes: left, mounts, nat, strays } = await tracesOf(bed)
    assert.deepEqual([left, mounts, nat, strays], [[], [], [], []])
    const containerd = await bed.start(closing)
    const { items } = await containerd.runtime.listPodSandbox({})
    assert.deepEqual(
      items.map(({ state }) => state),
      [SANDBOX_STATE.notReady],
    )
    assert.ok((await containerd.runtime.imageStatus({ image: { image: IMAGE } })).image)
  })

  it('is removed even if containerd cannot start', async () => {
    await using bed = createBed()
    {
      await using closing = new AsyncDisposableStack()
      const containerd = await bed.start(closing)
      await startPod(containerd, bed, { script: 'sleep 600', hostPort: true })
    }
    assert.notDeepEqual((await tracesOf(bed)).results, [])
    const config = readFileSync(bed.places.configFile, 'utf8')
    writeFileSync(bed.places.configFile, `${config}\n]]] this is no TOML\n`)
    const said: unknown[] = []
    const log = { ...bed.options.log, error: (error: unknown) => said.push(error) }
    assert.equal(await removeContainerd({ ...bed.options, log }), true)
    assert.match(String(said.at(-1)), /does not come up/)
    assert.deepEqual(await tracesOf(bed), NOTHING)
  })
})

interface Pod {
  readonly sandbox: string
  readonly container: string
}

interface PodWish {
  readonly script: string
  readonly sharesProcesses?: boolean
  readonly hostPort?: boolean
}

let count = 0

async function startPod({ runtime, cgroupParent }: Containerd, bed: Bed, wish: PodWish): Promise<Pod> {
  const uid = `pod-${process.pid}-${++count}`
  const logDirectory = join(bed.options.dataDir, 'logs', uid)
  mkdirSync(logDirectory, { recursive: true })
  const namespaceOptions = { pid: wish.sharesProcesses === true ? 0 : 1 }
  const sandboxConfig = {
    metadata: { name: uid, namespace: 'default', uid, attempt: 0 },
    hostname: 'pod',
    logDirectory,
    portMappings: wish.hostPort === true ? [{ containerPort: 80, hostPort: 20_000 + secureRandom.int(10_000) }] : [],
    linux: { cgroupParent: `${cgroupParent}/${uid}`, securityContext: { namespaceOptions } },
  }
  const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig })
  const config = {
    metadata: { name: 'app', attempt: 0 },
    image: { image: IMAGE },
    command: ['sh', '-c', wish.script],
    logPath: '0.log',
    linux: { securityContext: { namespaceOptions } },
  }
  const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig })
  await runtime.startContainer({ containerId })
  return { sandbox: podSandboxId, container: containerId }
}

async function removePod({ runtime }: Containerd, podSandboxId: string): Promise<void> {
  await runtime.stopPodSandbox({ podSandboxId })
  await runtime.removePodSandbox({ podSandboxId })
}

/** The first process of a running container. */
async function pidOf({ runtime }: Containerd, { container }: Pod): Promise<number> {
  const options = { waitForReady: true, timeoutMs: 20_000 }
  const { status, info } = await runtime.containerStatus({ containerId: container, verbose: true }, options)
  assert.equal(status?.state, CONTAINER_STATE.running)
  return Number(JSON.parse(info.get('info') ?? '{}').pid)
}

/** Another process of the container answers. */
async function comesBack(bed: Bed, killed: number): Promise<void> {
  const tools = { clock: realClock, random: secureRandom }
  for (let tries = 200; tries > 0; tries--) {
    const [pid = killed] = containerdIn(await processes(), bed.places)
    if (pid !== killed && (await findContainerd(tools, bed.places.socket)) !== undefined) return
    await sleep(realClock, 50)
  }
  assert.fail('containerd has not come back')
}
