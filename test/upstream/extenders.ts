/**
 * Compares preemption with a scheduler extender: `node test/upstream/extenders.ts`. One HTTP server answers our
 * scheduler and upstream's by the same rules, with whole objects and with names only. The script compares the requests
 * to the extender, the victims, the nominated node and the message.
 */
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

import { Nodes, Pods, type PodSpec } from '#apis/core/v1.ts'
import { PriorityClasses } from '#apis/scheduling/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { timeOf } from '#meta/time.ts'
import { createExtender } from '#scheduler/decision/extender.ts'

import { startPair } from './scheduler-pair.ts'

const OURS = 'ours'
const THEIRS = 'default-scheduler'
const namespace = 'default'
const NODES = ['n1', 'n2', 'n3']
const LOOK_EVERY_MS = 20
const PATIENCE_MS = 10_000

interface Victims {
  readonly Pods: readonly {
    readonly UID?: string
    readonly metadata?: { readonly uid: string; readonly name: string }
  }[]
  readonly NumPDBViolations?: number
}

interface Asked {
  readonly Pod: { readonly metadata: { readonly name: string } }
  readonly NodeNameToVictims?: Readonly<Record<string, Victims>> | null
  readonly NodeNameToMetaVictims?: Readonly<Record<string, Victims>> | null
}

/** The extender's behaviours by name: from the request to the response; a number is an HTTP status. */
const ANSWERS: Readonly<Record<string, (asked: Asked) => object | number>> = {
  'only one node': (asked) => answering({ n1: uidsOn(asked, 'n1') }),
  'all of them': (asked) => answering(Object.fromEntries(NODES.map((node) => [node, uidsOn(asked, node)]))),
  'fewer victims than are needed': (asked) => answering({ n2: uidsOn(asked, 'n2').slice(0, 1) }),
  nowhere: () => answering({}),
  'somebody who is not there': () => answering({ n1: ['nobody'] }),
  'nobody on a node': () => answering({ n1: [] }),
  'a node that nobody knows': () => answering({ n9: ['nobody'] }),
  'a failure': () => 500,
  'nothing that can be read': () => [1],
}

function answering(uids: Readonly<Record<string, readonly string[]>>): object {
  const entries = Object.entries(uids).map(([node, own]) => [
    node,
    { Pods: own.map((UID) => ({ UID })), NumPDBViolations: 0 },
  ])
  return { NodeNameToMetaVictims: Object.fromEntries(entries) as object }
}

function victimsIn({ NodeNameToVictims, NodeNameToMetaVictims }: Asked): Readonly<Record<string, Victims>> {
  return NodeNameToMetaVictims ?? NodeNameToVictims ?? {}
}

function uidsOn(asked: Asked, node: string): string[] {
  return (victimsIn(asked)[node]?.Pods ?? []).map(({ UID, metadata }) => UID ?? metadata?.uid ?? '')
}

class ExtenderUnderTest {
  readonly #server: HttpServer
  answer: (asked: Asked) => object | number = () => 500
  /** The first request since the behaviour was set. */
  first: Asked | undefined

  constructor() {
    this.#server = createServer((request, response) => {
      void this.#serve(request, response)
    })
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = JSON.parse(await text(request)) as Asked
    this.first ??= asked
    const answer = this.answer(asked)
    response.statusCode = typeof answer === 'number' ? answer : 200
    response.end(typeof answer === 'number' ? '' : JSON.stringify(answer))
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`
  }

  stop(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}

const asking = (cpu: number): Pick<PodSpec, 'containers'> => ({
  containers: [{ name: 'c', image: 'i', resources: { requests: { cpu: String(cpu) } } }],
})

/** Three nodes full of less important pods, of a time of their own each, and one pod that needs a whole node. */
async function play(client: ApiClient, extender: ExtenderUnderTest, schedulerName: string): Promise<string> {
  const names = new Map<string, string>()
  for (const [at, node] of NODES.entries()) {
    for (const which of ['a', 'b']) {
      const name = `${node}-${which}`
      const made = await client.create(Pods, {
        metadata: { namespace, name },
        spec: { ...asking(1), nodeName: node, terminationGracePeriodSeconds: 30 },
      })
      names.set(made.metadata.uid ?? '', name)
      const value = { status: { phase: 'Running', startTime: timeOf(1e12 + at * 60_000) } }
      await client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'merge', value })
    }
  }
  await sleep(realClock, 300)
  extender.first = undefined
  const spec = { ...asking(2), schedulerName, priorityClassName: 'high' }
  await client.create(Pods, { metadata: { namespace, name: 'important' }, spec })
  const said = await outcome(client)
  const asked = extender.first as Asked | undefined
  await client.deleteCollection(Pods, { namespace }, { gracePeriodSeconds: 0 })
  await sleep(realClock, 300)
  const shown = Object.entries(asked === undefined ? {} : victimsIn(asked)).map(
    ([node, { Pods: pods, NumPDBViolations }]) => {
      const who = pods.map(({ UID, metadata }) => names.get(UID ?? metadata?.uid ?? '')).join(' ')
      return `${node}: ${who} (${NumPDBViolations ?? 0})`
    },
  )
  const form = asked === undefined ? [] : Object.keys(asked).filter((key) => asked[key as keyof Asked] !== null)
  return [`asked ${form.join()} ${shown.sort().join('; ')}`, ...said].join('\n    ')
}

async function outcome(client: ApiClient): Promise<string[]> {
  for (let waitedMs = 0; ; waitedMs += LOOK_EVERY_MS) {
    await sleep(realClock, LOOK_EVERY_MS)
    const { status } = await client.get(Pods, { namespace, name: 'important' })
    const condition = status.conditions?.find(({ type }) => type === 'PodScheduled')
    if (condition === undefined && waitedMs < PATIENCE_MS) continue
    // Victims are sent away alongside.
    await sleep(realClock, 500)
    const { items } = await client.list(Pods, { namespace })
    const going = items.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
    const gone = going.map(({ metadata }) => metadata.name ?? '').sort()
    return [`says ${condition?.message}`, `nominated ${status.nominatedNodeName ?? ''}`, `sends away ${gone.join(' ')}`]
  }
}

async function compare(config: {
  nodeCacheCapable: boolean
  ignorable: boolean
}): Promise<[rows: number, differ: number]> {
  const extender = new ExtenderUnderTest()
  const settings = { urlPrefix: await extender.listen(), preemptVerb: 'preempt', weight: 1, ...config }
  const pair = await startPair(['ServiceAccount', 'TaintNodesByCondition', 'DefaultTolerationSeconds'], {
    placing: OURS,
    configuration: { extenders: [{ ...settings, enableHTTPS: false, httpTimeout: '5s' }] },
    extenders: [await createExtender(settings, { clock: realClock, readFile: (path) => readFile(path, 'utf8') })],
  })
  let differ = 0
  try {
    const { client } = pair
    await client.create(PriorityClasses, { metadata: { name: 'high' }, value: 1000 })
    for (const name of NODES) {
      await client.create(Nodes, { metadata: { name } })
      const allocatable = { cpu: '2', memory: '8Gi', pods: '10' }
      const status = { allocatable, capacity: allocatable }
      await client.patch(Nodes, { name, subresource: 'status' }, { type: 'merge', value: { status } })
      await client.patch(Nodes, { name }, { type: 'merge', value: { spec: { taints: null } } })
    }
    for (const [about, answer] of Object.entries(ANSWERS)) {
      extender.answer = answer
      const theirs = await play(client, extender, THEIRS)
      const ours = await play(client, extender, OURS)
      if (theirs === ours) continue
      differ++
      process.stdout.write(`${about} ${JSON.stringify(config)}\n  theirs\n    ${theirs}\n  ours\n    ${ours}\n`)
    }
  } finally {
    await pair.stop()
    extender.stop()
  }
  return [Object.keys(ANSWERS).length, differ]
}

async function main(): Promise<number> {
  let [rows, differ] = [0, 0]
  for (const [nodeCacheCapable, ignorable] of [
    [false, false],
    [true, false],
    [true, true],
  ] as const) {
    const [played, other] = await compare({ nodeCacheCapable, ignorable })
    rows += played
    differ += other
  }
  process.stdout.write(`${rows} preemptions with an extender, ${differ} differ from upstream\n`)
  return differ === 0 ? 0 : 1
}

process.exitCode = await main()
