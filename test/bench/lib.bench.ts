/** Benchmarks library code on every hot path: the work queue, metrics and JSON. */
import { Buffer } from 'node:buffer'

import { realClock } from '#lib/clock.ts'
import { parseJson, stringifyJson } from '#lib/json/json.ts'
import { createRegistry } from '#lib/metrics/metrics.ts'
import { registerWorkQueueMetrics } from '#lib/metrics/work-queue.ts'
import { WorkQueue } from '#lib/work-queue.ts'

import { type Bench, compareRates, type Contestant } from './bench.ts'
import { samplePodList } from './sample-pod.ts'
import { figure, type Table, times } from './table.ts'

const KEYS = 1000
const SERIES = 1000

export const bench: Bench = {
  about: 'work queue, metrics and JSON, each against the least that could do the job',
  async run() {
    return [
      await table('work queue: a key added, taken and done', workQueues()),
      await table('metrics: one series counted', counters()),
      await table(`metrics: a scrape of ${figure(SERIES)} histograms`, scrapes()),
      await table('JSON: a list of 100 Pods', jsonParsers()),
      await table('JSON: the same, written', jsonWriters()),
    ]
  },
}

async function table(title: string, contestants: readonly Contestant[]): Promise<Table> {
  const rates = await compareRates(contestants)
  const rows = rates.map(({ name, perSecond, ratio }) => [name, figure(perSecond), times(ratio)])
  return { title, columns: ['', 'per second', 'ratio'], rows }
}

function workQueues(): Contestant[] {
  const keys = Array.from({ length: KEYS }, (_, index) => `shop/web-${index}`)
  const plain = new Set<string>()
  const queue = new WorkQueue<string>({ clock: realClock })
  const metrics = registerWorkQueueMetrics(createRegistry())('bench')
  const counted = new WorkQueue<string>({ clock: realClock, metrics })
  const drain = async (work: WorkQueue<string>): Promise<void> => {
    for (const key of keys) work.add(key)
    for (let left = keys.length; left > 0; left--) work.done((await work.get()) as string)
  }
  return [
    {
      name: 'a Set, nothing promised',
      perCall: KEYS,
      run() {
        for (const key of keys) plain.add(key)
        for (const key of plain) plain.delete(key)
        return plain.size
      },
    },
    { name: 'work queue', perCall: KEYS, run: () => drain(queue) },
    { name: 'work queue with metrics', perCall: KEYS, run: () => drain(counted) },
  ]
}

/** Once around the loop of a contestant that is too quick to be timed by itself. */
const REPEAT = 1000

function counters(): Contestant[] {
  const plain = new Map([['get', { value: 0 }]])
  const registry = createRegistry()
  const requests = registry.counter({ name: 'bench_requests_total', help: 'Requests', labels: ['verb', 'code'] })
  const seconds = registry.histogram({ name: 'bench_seconds', help: 'Seconds', labels: ['verb'] })
  const handle = requests.labels('get', '200')
  const repeat = (name: string, run: (index: number) => unknown): Contestant => ({
    name,
    perCall: REPEAT,
    run() {
      let last: unknown
      for (let index = 0; index < REPEAT; index++) last = run(index)
      return last ?? registry
    },
  })
  return [
    repeat('a number in a Map', () => {
      const counter = plain.get('get')
      if (counter !== undefined) counter.value++
      return counter
    }),
    repeat('counter, handle kept', () => handle.inc()),
    repeat('counter, labels looked up', () => requests.labels('get', '200').inc()),
    repeat('histogram, labels looked up', (index) => seconds.labels('get').observe(index / 100)),
  ]
}

function scrapes(): Contestant[] {
  const registry = createRegistry()
  const family = registry.histogram({ name: 'bench_seconds', help: 'Seconds', labels: ['resource'] })
  for (let index = 0; index < SERIES; index++) family.labels(`resource-${index}`).observe(index / 100)
  const text = registry.render()
  const lines = text.split('\n')
  return [
    { name: 'joining the ready lines', run: () => lines.join('\n') },
    { name: 'scrape', run: () => registry.render() },
  ]
}

function jsonParsers(): Contestant[] {
  const text = JSON.stringify(samplePodList(100))
  const bytes = Buffer.from(text)
  const escaped = text.replace('"app":"web"', String.raw`"app":"\ud83d\ude00"`)
  return [
    { name: 'JSON.parse', run: () => JSON.parse(text) as unknown },
    { name: 'parseJson of text', run: () => parseJson(text) },
    { name: 'parseJson of bytes', run: () => parseJson(bytes) },
    {
      name: 'parseJson, exact parser needed',
      run: () => parseJson(escaped.replace('"priority":0', '"priority":9223372036854775807')),
    },
  ]
}

function jsonWriters(): Contestant[] {
  const value = samplePodList(100)
  return [
    { name: 'JSON.stringify', run: () => JSON.stringify(value) },
    { name: 'stringifyJson', run: () => stringifyJson(value) },
    { name: 'stringifyJson, keys sorted', run: () => stringifyJson(value, { sortedKeys: true }) },
  ]
}
