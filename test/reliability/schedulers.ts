/**
 * Kills schedulers: `node test/reliability/schedulers.ts [rounds]`. Two schedulers run and one leads. While pods are
 * created, each round kills the leader at a random moment and starts another scheduler. Finally every pod must be bound
 * exactly once, and no node may be overcommitted.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'

import type { Pod } from '#apis/core/v1.ts'
import type { Event } from '#apis/events/v1.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'

import {
  type ComponentPrograms,
  componentPrograms,
  type RunningProgram,
  until,
} from '../integration/component-programs.ts'

const PODS = '/api/v1/namespaces/default/pods'
const PODS_PER_ROUND = 20
/** More than it takes to lead and to begin, so that some die in the middle of their work. */
const LIFE_MS = 3000

async function makeNodes({ plane }: ComponentPrograms, podsEach: number): Promise<void> {
  const allocatable = { cpu: '1000', memory: '1Ti', pods: String(podsEach) }
  for (const name of ['n1', 'n2', 'n3']) {
    const node = { metadata: { name }, status: { allocatable, capacity: allocatable } }
    const made = await plane.request('POST', '/api/v1/nodes', node)
    assert.equal(made.status, 201, made.text)
  }
}

async function makePods({ plane }: ComponentPrograms, round: number): Promise<void> {
  for (let at = 0; at < PODS_PER_ROUND; at++) {
    const pod = { metadata: { name: `p-${round}-${at}` }, spec: { containers: [{ name: 'c', image: 'i' }] } }
    const made = await plane.request('POST', PODS, pod)
    assert.equal(made.status, 201, made.text)
  }
}

const isAlive = ({ child }: RunningProgram): boolean => child.exitCode === null && child.signalCode === null

/** How many ended by themselves, because they were held up for so long that they lost the lead. */
let lost = 0

async function killLeader(programs: ComponentPrograms, running: readonly RunningProgram[]): Promise<RunningProgram[]> {
  const leads = async ({ port }: RunningProgram): Promise<boolean> => {
    const metrics = await programs.page(port, '/metrics', programs.plane.token).catch(() => undefined)
    return metrics !== undefined && /leader_election_master_status\{name="kube-scheduler"\} 1/.test(metrics.text)
  }
  const leader = await until('a leader', async () => {
    for (const one of running.filter(isAlive)) if (await leads(one)) return one
    return undefined
  })
  await sleep(realClock, secureRandom.int(LIFE_MS))
  if (leader.child.kill('SIGKILL') && isAlive(leader)) await once(leader.child, 'exit')
  const ended = running.filter((one) => one !== leader && !isAlive(one))
  for (const { log } of ended) assert.match(log(), /leaderelection lost/)
  lost += ended.length
  return running.filter(isAlive)
}

async function judge(programs: ComponentPrograms, total: number, podsEach: number): Promise<void> {
  const pods = await until('every pod to be bound', async () => {
    const { items } = (await programs.get(PODS)) as { items: Pod[] }
    const isDone = items.length === total && items.every(({ spec }) => (spec.nodeName ?? '') !== '')
    return isDone ? items : undefined
  })
  const placeOf = new Map(pods.map(({ metadata, spec }) => [metadata.name, spec.nodeName]))
  const onNode = Map.groupBy(pods, ({ spec }) => spec.nodeName)
  for (const [node, there] of onNode) assert.ok(there.length <= podsEach, `${node} holds ${there.length}`)
  const { items } = (await programs.get('/apis/events.k8s.io/v1/namespaces/default/events')) as { items: Event[] }
  for (const { note = '', reason, regarding } of items) {
    if (reason !== 'Scheduled') continue
    const told = note.split(' ').at(-1)
    assert.equal(told, placeOf.get(regarding?.name), `${regarding?.name} was told to be on ${told}`)
  }
}

const rounds = Number(process.argv[2] ?? 50)
const total = rounds * PODS_PER_ROUND
const podsEach = Math.ceil(total / 3)
const settings = { 'disable-admission-plugins': ['ServiceAccount', 'TaintNodesByCondition'] }
await using programs = await componentPrograms('kube-scheduler', settings)
await makeNodes(programs, podsEach)
let running = [await programs.start(), await programs.start()]
for (let round = 0; round < rounds; round++) {
  const [left] = await Promise.all([killLeader(programs, running), makePods(programs, round)])
  running = left
  while (running.length < 2) running.push(await programs.start())
  process.stderr.write(`round ${round + 1} of ${rounds}\n`)
}
await judge(programs, total, podsEach)
process.stdout.write(`${total} pods bound once, ${rounds} leaders killed, ${lost} lost their lease without a kill\n`)
