import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { SimulatedWindows } from '#kits/supervisor/simulated-windows.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { WINDOWS_SETTINGS } from '../settings.fixture.ts'
import { Supervisor } from '../supervisor.ts'
import { Agent } from './agent.ts'
import { type AgentServer, planAnswer, type PlanAnswer, type TunnelEnd } from './server.ts'

const MINUTE = 60_000
const MARK = 'C:\\etc\\rancher\\connected'
const ALL = ['flanneld', 'kube-proxy', 'kubelet']

const planOf = (changes: object = {}): PlanAnswer => ({
  kind: 'plan',
  document: { certs: { 'kube-ca.pem': 'CA 1' }, files: [], node: WINDOWS_SETTINGS, ...changes },
})

/** A server with scripted answers that records its requests with their times. */
class Server implements AgentServer {
  readonly requests: string[] = []
  answer: PlanAnswer = planOf()
  /** Undefined: tunnels open and stay. */
  refusal: TunnelEnd | undefined
  readonly #clock: VirtualClock
  #cut: (end: TunnelEnd) => void = () => undefined

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  async tunnel(mode: string, opened: () => void, signal: AbortSignal): Promise<TunnelEnd> {
    this.#note(mode)
    if (this.refusal !== undefined) return this.refusal
    opened()
    return new Promise((resolve) => {
      this.#cut = resolve
      signal.addEventListener('abort', () => resolve({ kind: 'ended' }))
    })
  }

  async plan(): Promise<PlanAnswer> {
    this.#note('plan')
    return this.answer
  }

  cut(end: TunnelEnd = { kind: 'broken', message: 'An existing connection was forcibly closed' }): void {
    this.#cut(end)
  }

  times(what: string): number[] {
    return this.requests.flatMap((line) => (line.endsWith(` ${what}`) ? [Number(line.split(' ')[0])] : []))
  }

  #note(what: string): void {
    this.requests.push(`${this.#clock.elapsed() / 1000} ${what}`)
  }
}

interface Bed {
  readonly clock: VirtualClock
  readonly machine: SimulatedWindows
  readonly server: Server
  readonly agent: Agent
  /** The result of `run`. */
  readonly ended: string[]
  readonly supervisors: Supervisor[]
  readonly names: () => string[]
  readonly logged: () => string[]
}

async function withAgent(
  options: { readonly files?: Readonly<Record<string, string>>; readonly before?: (server: Server) => void },
  use: (bed: Bed) => Promise<void>,
): Promise<void> {
  const clock = createVirtualClock()
  const machine = new SimulatedWindows({ clock, ...(options.files && { files: options.files }) })
  const server = new Server(clock)
  options.before?.(server)
  const supervisors: Supervisor[] = []
  const { host } = machine
  const agent = new Agent({
    host,
    server,
    createSupervisor(settings) {
      const random = createSeededRandom(1)
      const supervisor = new Supervisor({ host, random, settings, health: {}, report: () => undefined })
      supervisors.push(supervisor)
      return supervisor
    },
  })
  const stop = new AbortController()
  const ended: string[] = []
  const running = agent.run(stop.signal).then((how) => ended.push(how))
  const names = (): string[] =>
    machine
      .running()
      .map(({ name }) => name)
      .sort()
  const logged = (): string[] => machine.journal.filter((line) => / say /.test(line))
  await use({ clock, machine, server, agent, ended, supervisors, names, logged })
  stop.abort()
  await clock.advance(5 * MINUTE)
  await running
}

describe('Agent', () => {
  it('registers, requests the plan at once and every two minutes, and starts the node', () =>
    withAgent({}, async ({ clock, machine, server, names }) => {
      await clock.advance(5 * MINUTE)
      assert.deepEqual(server.requests, ['0 register', '0 plan', '120 plan', '240 plan'])
      assert.deepEqual(names(), ALL)
      assert.equal(machine.files.get('C:\\etc\\kubernetes\\ssl\\kube-ca.pem'), 'CA 1')
      assert.ok(machine.files.has(MARK))
    }))

  it('connects if it is registered, and requests the plan after each reconnect', () =>
    withAgent({ files: { [MARK]: '' } }, async ({ clock, server }) => {
      await clock.advance(30_000)
      server.cut()
      await clock.advance(10_000)
      assert.deepEqual(server.requests, ['0 connect', '0 plan', '35 connect', '35 plan'])
    }))

  it('retries two seconds after an answer without a plan, and ten seconds after an error', () =>
    withAgent({ before: (server) => (server.answer = { kind: 'not-ready' }) }, async ({ clock, server, names }) => {
      await clock.advance(5000)
      assert.deepEqual(server.times('plan'), [0, 2, 4])
      server.answer = { kind: 'failed', message: 'the server answered 500' }
      await clock.advance(20_000)
      assert.deepEqual(server.times('plan'), [0, 2, 4, 6, 16])
      assert.deepEqual(names(), [])
      server.answer = planOf()
      await clock.advance(3 * MINUTE)
      assert.deepEqual(names(), ALL)
    }))

  it('runs nothing without a plan, and requests it again', () =>
    withAgent({ before: (server) => (server.answer = { kind: 'none' }) }, async ({ clock, server, names }) => {
      await clock.advance(3 * MINUTE)
      assert.deepEqual(server.times('plan'), [0, 120])
      assert.deepEqual(names(), [])
    }))

  it('writes only changed files, and restarts kubelet and kube-proxy for them', () =>
    withAgent({}, async ({ clock, machine, server, supervisors }) => {
      await clock.advance(5 * MINUTE)
      const writes = (): string[] => machine.journal.filter((line) => line.includes('write C:\\etc\\kubernetes\\ssl'))
      assert.equal(writes().length, 1)
      const contents = Buffer.from('clusters: []').toString('base64')
      server.answer = planOf({
        certs: { 'kube-ca.pem': 'CA 2' },
        files: [{ name: 'C:\\etc\\kubernetes\\ssl\\kubecfg-kube-node.yaml', contents }],
      })
      await clock.advance(6 * MINUTE)
      assert.equal(writes().length, 3)
      assert.equal(machine.files.get('C:\\etc\\kubernetes\\ssl\\kubecfg-kube-node.yaml'), 'clusters: []')
      assert.equal(supervisors.length, 1)
      assert.deepEqual(supervisors[0]?.status.starts, {
        kubelet: 2,
        flanneld: 2,
        'kube-proxy': 2,
        'kube-network-policies': 0,
      })
      assert.equal(machine.doubles, 0)
    }))

  it('passes a changed plan to the supervisor, and keeps the last valid one', () =>
    withAgent({}, async ({ clock, machine, server, agent, logged }) => {
      await clock.advance(5 * MINUTE)
      server.answer = planOf({ node: { ...WINDOWS_SETTINGS, kubeProxyOptions: ['--v=6'] } })
      await clock.advance(5 * MINUTE)
      const args = (): readonly string[] | undefined =>
        machine.running().find(({ name }) => name === 'kube-proxy')?.launch.args
      assert.deepEqual(args(), ['--cluster-cidr=10.42.0.0/16', '--v=6'])
      server.answer = planOf({ node: { nodeName: 'x' } })
      await clock.advance(3 * MINUTE)
      assert.equal(agent.status.lastAnswer, 'unusable')
      assert.match(logged().join('\n'), /the plan cannot be used: "clusterCidr" is missing/)
      assert.deepEqual(args(), ['--cluster-cidr=10.42.0.0/16', '--v=6'])
    }))

  it('only writes files if the plan does not start processes', () =>
    withAgent({ before: (server) => (server.answer = planOf({ writeCertsOnly: true })) }, async (bed) => {
      await bed.clock.advance(3 * MINUTE)
      assert.ok(bed.machine.files.has('C:\\etc\\kubernetes\\ssl\\kube-ca.pem'))
      assert.deepEqual(bed.names(), [])
    }))

  it('accepts file paths only in allowed folders', async () => {
    for (const changes of [
      { certs: { '..\\x': '' } },
      { files: [{ name: 'relative', contents: '' }] },
      { files: [{ name: 'C:\\etc\\..\\windows\\x', contents: '' }] },
    ])
      await withAgent({ before: (server) => (server.answer = planOf(changes)) }, async ({ clock, agent, names }) => {
        await clock.advance(MINUTE)
        assert.equal(agent.status.lastAnswer, 'unusable')
        assert.deepEqual(names(), [])
      })
  })
})

describe('Agent with an unreachable server', () => {
  const AWAY: TunnelEnd = { kind: 'broken', message: 'connect ECONNREFUSED' }

  it('keeps the node running for an hour, restarts dead processes, and logs little', () =>
    withAgent({}, async ({ clock, machine, server, names, logged }) => {
      await clock.advance(5 * MINUTE)
      const before = logged().length
      server.refusal = AWAY
      server.answer = { kind: 'failed', message: 'connect ECONNREFUSED' }
      server.cut()
      const random = createSeededRandom(5)
      for (let round = 0; round < 15; round++) {
        machine.kill(...(['kubelet', 'flanneld', 'kube-proxy'] as const).filter(() => random.int(2) === 0))
        await clock.advance(4 * MINUTE)
        assert.deepEqual(names(), ALL, `round ${round}`)
      }
      assert.equal(machine.doubles, 0)
      assert.equal(
        logged()
          .slice(before)
          .filter((line) => line.includes('not connected')).length,
        1,
      )
      const [first = 0, second = 0] = server.times('connect')
      assert.equal(second - first, 5, 'silently at first')
      server.refusal = undefined
      server.answer = planOf()
      await clock.advance(20_000)
      assert.match(logged().at(-1) ?? '', /connected to the server/)
    }))

  it('starts the node with the stored plan', async () => {
    const files: Record<string, string> = { [MARK]: '' }
    await withAgent({}, async ({ clock, machine }) => {
      await clock.advance(MINUTE)
      files['C:\\etc\\rancher\\plan.json'] = machine.files.get('C:\\etc\\rancher\\plan.json') ?? ''
    })
    const before = (server: Server): void => {
      server.refusal = AWAY
      server.answer = { kind: 'failed', message: 'away' }
    }
    await withAgent({ files, before }, async ({ clock, names }) => {
      await clock.advance(3 * MINUTE)
      assert.deepEqual(names(), ALL)
    })
  })

  it('reconnects ten times without logging', () =>
    withAgent({ files: { [MARK]: '' } }, async ({ clock, server, logged }) => {
      await clock.advance(1000)
      server.refusal = AWAY
      server.cut()
      await clock.advance(48_000)
      assert.equal(server.times('connect').length, 10)
      assert.deepEqual(
        logged().filter((line) => line.includes('not connected')),
        [],
      )
      await clock.advance(12_000)
      assert.equal(logged().filter((line) => line.includes('not connected')).length, 1)
    }))
})

describe('Agent with a server that rejects the node', () => {
  it('registers again after three refusals', () => {
    const before = (server: Server): void => void (server.refusal = { kind: 'refused', message: 'answered 400' })
    return withAgent({ files: { [MARK]: '' }, before }, async ({ clock, server }) => {
      await clock.advance(35_000)
      assert.deepEqual(
        server.requests.filter((line) => !line.endsWith('plan')),
        ['0 connect', '10 connect', '20 connect', '30 register'],
      )
    })
  })

  it('alternates between connecting and registering while both are refused', () => {
    const before = (server: Server): void => void (server.refusal = { kind: 'refused', message: 'answered 502' })
    return withAgent({ files: { [MARK]: '' }, before }, async ({ clock, server, machine }) => {
      await clock.advance(75_000)
      const modes = server.requests.filter((line) => !line.endsWith('plan')).map((line) => line.split(' ')[1])
      const [connect, register] = ['connect', 'register']
      assert.deepEqual(modes, [connect, connect, connect, register, connect, connect, connect, register])
      server.refusal = undefined
      await clock.advance(10_000)
      assert.equal(server.requests.at(-2)?.split(' ')[1], connect)
      assert.ok(machine.files.has(MARK))
    })
  })

  it('repeats only the registration if the node was never registered', () => {
    const before = (server: Server): void => void (server.refusal = { kind: 'refused', message: 'answered 401' })
    return withAgent({ before }, async ({ clock, server, machine }) => {
      await clock.advance(45_000)
      assert.equal(server.times('register').length, 5)
      assert.ok(!machine.files.has(MARK))
    })
  })

  it('keeps the Kubernetes files of a removed machine that never had a plan', () => {
    const files = { 'C:\\etc\\kubernetes\\ssl\\kube-ca.pem': 'theirs', 'C:\\etc\\rancher\\credential': 'secret' }
    const before = (server: Server): void => void (server.answer = { kind: 'none' })
    return withAgent({ files, before }, async ({ clock, machine, server, ended }) => {
      await clock.advance(MINUTE)
      server.answer = { kind: 'not-found', message: 'nodes "n" not found' }
      server.cut()
      await clock.advance(7 * MINUTE)
      assert.deepEqual(ended, ['removed'])
      const left = ['C:\\etc\\rancher\\credential', MARK].filter((path) => machine.files.has(path))
      assert.deepEqual(left, [])
      assert.equal(machine.files.get('C:\\etc\\kubernetes\\ssl\\kube-ca.pem'), 'theirs')
      assert.ok(machine.files.has('C:\\etc\\kubernetes\\bin\\kubelet.exe'))
    })
  })

  it('cleans the machine after five minutes of answers that the node is not found', () =>
    withAgent({}, async ({ clock, machine, server, ended, names }) => {
      machine.files.set('C:\\var\\lib\\kubelet\\config.yaml', 'kind: KubeletConfiguration')
      machine.files.set('C:\\Users\\me\\notes.txt', 'mine')
      await clock.advance(3 * MINUTE)
      server.answer = { kind: 'not-found', message: 'nodes "n" not found' }
      server.cut()
      await clock.advance(5 * MINUTE)
      assert.deepEqual(ended, [], 'five minutes have not passed since the first answer')
      assert.deepEqual(names(), ALL)
      await clock.advance(MINUTE)
      assert.deepEqual(ended, ['removed'])
      assert.deepEqual(names(), [])
      assert.deepEqual(machine.networks, [])
      assert.deepEqual([...machine.files.keys()], ['C:\\Users\\me\\notes.txt'])
      const requests = server.requests.length
      await clock.advance(60 * MINUTE)
      assert.equal(server.requests.length, requests)
    }))

  const OTHERS: readonly PlanAnswer[] = [
    planOf(),
    { kind: 'none' },
    { kind: 'not-ready' },
    { kind: 'failed', message: 'answered 502' },
  ]
  for (const other of OTHERS)
    it(`resets its count of rejections after an answer of kind ${other.kind}`, () =>
      withAgent({}, async ({ clock, server, ended, names }) => {
        await clock.advance(3 * MINUTE)
        for (let round = 0; round < 5; round++) {
          server.answer = { kind: 'not-found', message: 'nodes "n" not found' }
          server.cut()
          await clock.advance(5 * MINUTE)
          server.answer = other
          await clock.advance(31_000)
        }
        assert.deepEqual([ended, names()], [[], ALL])
      }))
})

describe('response of a server to the plan request of a node agent', () => {
  const status = (change: object = {}): string =>
    JSON.stringify({
      kind: 'Status',
      apiVersion: 'v1',
      status: 'Failure',
      message: 'nodes "n1" not found',
      reason: 'NotFound',
      details: { name: 'n1', kind: 'nodes' },
      code: 404,
      ...change,
    })
  const CASES: readonly (readonly [what: string, code: number, body: string, kind: PlanAnswer['kind']])[] = [
    ['a Status of the API for this node', 404, status(), 'not-found'],
    ['a plain text message', 404, 'node not found', 'none'],
    ['the error page of a proxy', 502, '<html>cluster not found</html>', 'failed'],
    ['a Status with another code', 500, status({ code: 500 }), 'failed'],
    ['a Status whose code differs from the HTTP code', 403, status(), 'failed'],
    ['a Status for another node', 404, status({ details: { name: 'n2', kind: 'nodes' } }), 'none'],
    ['a Status for another kind', 404, status({ details: { name: 'n1', kind: 'pods' } }), 'none'],
    ['a Status without details', 404, status({ details: undefined }), 'none'],
    ['a Status for another reason', 404, status({ reason: 'Unknown' }), 'none'],
    ['another object', 404, status({ kind: 'List' }), 'none'],
    ['a list', 404, '[]', 'none'],
    ['null', 404, 'null', 'none'],
    ['a truncated Status', 404, status().slice(0, 40), 'none'],
  ]
  for (const [what, code, body, kind] of CASES)
    it(`counts as "${kind}" if it is ${what} with HTTP code ${code}`, () =>
      assert.equal(planAnswer(code, body, 'N1').kind, kind))
})
