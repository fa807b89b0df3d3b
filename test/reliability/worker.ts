/**
 * Worker kill tests: `node test/reliability/worker.ts [--rounds 200] [--seed 1]`, as root, with containerd. `hyperkube
 * node agent` keeps our kubelet, flanneld and kube-proxy running. The test kills random ones: at rest, during starts,
 * during a change of the plan, and together with the supervisor. Killed processes must return in order, no process may
 * run twice, and containers must keep running. flanneld and kube-proxy run in a separate network namespace, so that
 * this machine's network stays unchanged.
 */
import { parseArgs } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'
import { createSeededRandom, type Random } from '#lib/random.ts'

import { type Alive, NAMES, type Name, startWorker, type Worker } from './worker-bed.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '200' }, seed: { type: 'string', default: '1' } },
})

const PATIENCE_MS = 240_000
const LOOK_MS = 100
/** Longer than a supervisor takes from a death to the start of the one that died. */
const QUIET_MS = 3000

const say = (line: string): void => void process.stdout.write(`${line}\n`)

type Kind = 'at rest' | 'again while they come back' | 'and another plan' | 'and the supervisor'

/** One in ten of the last, as they take longest. */
const KINDS: readonly Kind[] = [
  ...Array.from({ length: 5 }, (): Kind => 'at rest'),
  'again while they come back',
  'again while they come back',
  'and another plan',
  'and another plan',
  'and the supervisor',
]

interface Round {
  readonly kind: Kind
  readonly victims: readonly Name[]
  readonly before: Alive
}

function chooseVictims(random: Random): readonly Name[] {
  const chosen = NAMES.filter(() => random.int(2) === 0)
  return chosen.length === 0 ? NAMES : chosen
}

/** The processes that are started if these are missing: flanneld starts together with kubelet. */
function startedFor(victims: readonly Name[]): readonly Name[] {
  return NAMES.filter((name) => victims.includes(name) || (name === 'flanneld' && victims.includes('kubelet')))
}

/** Until `isSo`; complains of two of a kind at any moment before. */
async function until(worker: Worker, faults: Set<string>, isSo: (now: Alive) => Promise<boolean>): Promise<Alive> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += LOOK_MS) {
    const found = await worker.living()
    for (const name of NAMES) if (found[name].length > 1) faults.add(`${found[name].length} of ${name} at once`)
    const [kubelet, flanneld, proxy] = NAMES.map((name) => found[name][0])
    if (kubelet && flanneld && proxy) {
      const now = { kubelet, flanneld, 'kube-proxy': proxy }
      if (await isSo(now)) return now
    }
    await sleep(realClock, LOOK_MS)
  }
  throw new Error(`What died did not come back: ${JSON.stringify(await worker.status())}`)
}

/** Waits until the supervisor is idle and no process has changed for longer than the interval of its checks. */
async function untilQuiet(worker: Worker, faults: Set<string>, isSo: (now: Alive) => boolean): Promise<Alive> {
  let [face, sinceMs] = ['', realClock.elapsed()]
  return until(worker, faults, async (now) => {
    const { starting, last } = await worker.status()
    const seen = `${starting} ${last?.kind} ${NAMES.map((name) => now[name].pid).join(' ')}`
    if (seen !== face) [face, sinceMs] = [seen, realClock.elapsed()]
    return starting === undefined && last?.kind === 'ok' && isSo(now) && realClock.elapsed() - sinceMs > QUIET_MS
  })
}

/** The three are whole before; those that die are started once each, in order. */
async function atRest(worker: Worker, { victims, before }: Round, faults: Set<string>): Promise<Alive> {
  const { starts } = await worker.status()
  const expected = startedFor(victims)
  const countOf = (now: Partial<Record<string, number>> | undefined, name: Name): number =>
    (now?.[name] ?? 0) - (starts?.[name] ?? 0)
  worker.kill(victims.map((name) => before[name]))
  const after = await until(worker, faults, async () => {
    const now = await worker.status()
    return now.starting === undefined && expected.every((name) => countOf(now.starts, name) > 0)
  })
  const { starts: now } = await worker.status()
  for (const name of NAMES) {
    const wanted = expected.includes(name) ? 1 : 0
    if (countOf(now, name) !== wanted) faults.add(`${name} was started ${countOf(now, name)} times, not ${wanted}`)
    if (wanted === 0 && after[name].pid !== before[name].pid) faults.add(`${name} is another, and had not died`)
  }
  judgeOrder(expected, after, faults)
  return after
}

function judgeOrder(names: readonly Name[], now: Alive, faults: Set<string>): void {
  const began = names.map((name) => now[name].began)
  if (began.some((ticks, at) => at > 0 && ticks < (began[at - 1] ?? 0)))
    faults.add(`the order was another: ${names.map((name) => `${name} ${now[name].began}`).join(', ')}`)
}

/** When the world changes meanwhile, the order is that of who died last; but flanneld always follows kubelet. */
async function inTurmoil(worker: Worker, round: Round, random: Random, faults: Set<string>): Promise<Alive> {
  const { kind, victims, before } = round
  const killed = new Set(victims.map((name) => before[name].pid))
  if (kind === 'and another plan') worker.changePlan()
  worker.kill(victims.map((name) => before[name]))
  if (kind === 'and the supervisor') await worker.restartSupervisor()
  if (kind === 'again while they come back') {
    await sleep(realClock, random.int(9000))
    const found = await worker.living()
    const more = chooseVictims(random).flatMap((name) => found[name])
    for (const { pid } of more) killed.add(pid)
    worker.kill(more)
  }
  const after = await untilQuiet(
    worker,
    faults,
    (now) => NAMES.every((name) => !killed.has(now[name].pid)) && now['kube-proxy'].words.includes(worker.proxyFlag),
  )
  if (after.kubelet.pid !== before.kubelet.pid) judgeOrder(['kubelet', 'flanneld'], after, faults)
  return after
}

async function main(): Promise<number> {
  await using closing = new AsyncDisposableStack()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void closing.disposeAsync().finally(() => process.exit(1)))
  const worker = await startWorker(closing)
  const faults: string[] = []
  const early = new Set<string>()
  let before = await untilQuiet(worker, early, () => true)
  faults.push(...early)
  const containers = await worker.startPods()
  say(`all three run, and ${containers.size} containers`)
  const random = createSeededRandom(Number(values.seed))
  const counts: Record<string, number> = {}
  const startedMs = realClock.elapsed()
  for (let at = 1; at <= Number(values.rounds); at++) {
    const kind = KINDS[random.int(KINDS.length)] ?? 'at rest'
    const round: Round = { kind, victims: chooseVictims(random), before }
    const wrong = new Set<string>()
    before = await (kind === 'at rest' ? atRest(worker, round, wrong) : inTurmoil(worker, round, random, wrong))
    for (const face of await worker.lostContainers(containers)) wrong.add(`lost: ${face}`)
    const what = `${round.victims.join(' and ')} killed ${kind}`
    counts[kind] = (counts[kind] ?? 0) + 1
    for (const text of wrong) {
      faults.push(`round ${at}, ${what}: ${text}`)
      say(faults.at(-1) ?? '')
    }
    if (at % 10 === 0 || wrong.size > 0)
      say(`${at} rounds in ${Math.round((realClock.elapsed() - startedMs) / 1000)} s, ${faults.length} faults`)
  }
  for (const [kind, count] of Object.entries(counts)) say(`${kind}: ${count} rounds`)
  for (const line of await worker.told()) say(line)
  say(faults.length === 0 ? 'all checks passed' : `${faults.length} checks failed`)
  return faults.length === 0 ? 0 : 1
}

process.exitCode = await main()
