/** Benchmarks `hyperkube/testing`: the start, memory, virtual time and forks of a cluster in a test. */
import { performance } from 'node:perf_hooks'

import { type CronJob, CronJobs, Jobs } from '#apis/batch/v1.ts'
import { ConfigMaps } from '#apis/core/v1.ts'
import type { Draft } from '#client/api-client.ts'
import { type ClusterOptions, startCluster, type TestCluster } from '#testing/cluster.ts'

import { type Bench, quantile } from './bench.ts'
import { figure } from './table.ts'

const STARTS = 15
const FORKS = 7
const TOGETHER = 20
const OBJECTS = 10_000
const AT_ONCE = 64
const namespace = 'default'
const VIRTUAL: ClusterOptions = { clock: 'virtual' }

export const bench: Bench = {
  about: `hyperkube/testing with one simulated node; starts are the median of ${STARTS}, after two to warm up`,
  async run() {
    const start = await starts()
    const [daily, hourly] = [await week('0 3 * * *'), await week('0 * * * *')]
    const fork = await forks()
    const rows = [
      ['startCluster(), ms', figure(start.wallMs), figure(start.cpuMs), '150'],
      [`memory of each of ${TOGETHER} clusters, MB resident`, figure(await residentMb()), '', '30'],
      ['a week with a daily CronJob, ms', figure(daily.wallMs), figure(daily.cpuMs), '2000'],
      ['a week with an hourly CronJob, ms', figure(hourly.wallMs), figure(hourly.cpuMs), ''],
      [`fork() of ${OBJECTS} objects, ms`, figure(fork.wallMs), figure(fork.cpuMs), '100'],
    ]
    return [{ title: 'a cluster in a test', columns: ['', 'measured', 'of which CPU', 'budget'], rows }]
  },
}

interface Took {
  readonly wallMs: number
  readonly cpuMs: number
}

async function timed<T>(work: () => Promise<T>): Promise<readonly [Took, T]> {
  const startMs = performance.now()
  const before = process.cpuUsage()
  const result = await work()
  const { user, system } = process.cpuUsage(before)
  return [{ wallMs: performance.now() - startMs, cpuMs: (user + system) / 1000 }, result]
}

/** Each stops what it made. */
async function median(rounds: number, make: () => Promise<TestCluster>): Promise<Took> {
  const took: Took[] = []
  for (let round = -2; round < rounds; round++) {
    const [one, cluster] = await timed(make)
    if (round >= 0) took.push(one)
    await cluster.stop()
  }
  const middle = (of: (one: Took) => number): number => quantile(took.map(of), 0.5)
  return { wallMs: middle(({ wallMs }) => wallMs), cpuMs: middle(({ cpuMs }) => cpuMs) }
}

function starts(): Promise<Took> {
  return median(STARTS, () => startCluster(VIRTUAL))
}

async function residentMb(): Promise<number> {
  await using closing = new AsyncDisposableStack()
  const before = process.memoryUsage().rss
  for (let at = 0; at < TOGETHER; at++) closing.use(await startCluster(VIRTUAL))
  return (process.memoryUsage().rss - before) / TOGETHER / 1e6
}

/** Twice; the second time has to end with the same objects. */
async function week(schedule: string): Promise<Took> {
  const live = async (): Promise<string> => {
    await using cluster = await startCluster({ ...VIRTUAL, pulse: '2h' })
    await cluster.client.create(CronJobs, cronJob(schedule))
    await cluster.clock.advance('7d')
    return JSON.stringify([await cluster.client.list(CronJobs), await cluster.client.list(Jobs)])
  }
  const first = await live()
  const [took, second] = await timed(live)
  if (first !== second) throw new Error('The same seed has come to something else')
  return took
}

function cronJob(schedule: string): Draft<CronJob> {
  const containers = [{ name: 'main', image: 'job:1', command: ['sleep', '5'], resources: {} }]
  const template = { metadata: {}, spec: { restartPolicy: 'OnFailure', containers } }
  return {
    metadata: { namespace, name: 'job' },
    spec: { schedule, jobTemplate: { metadata: {}, spec: { template } } },
  }
}

async function forks(): Promise<Took> {
  await using cluster = await startCluster(VIRTUAL)
  const { client } = cluster
  const data = { text: 'x'.repeat(500) }
  for (let at = 0; at < OBJECTS; at += AT_ONCE)
    await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, OBJECTS - at) }, (_, each) =>
        client.create(ConfigMaps, { metadata: { namespace, name: `c-${at + each}` }, data }),
      ),
    )
  return await median(FORKS, () => cluster.fork())
}
