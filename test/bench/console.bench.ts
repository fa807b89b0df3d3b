/**
 * Benchmarks the console in Chromium with many pods: first rows, complete list, sorting, filtering, scrolling, memory, and
 * updates. A page that reads all objects as JSON and draws a row for each is the reference.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'

import type { Page } from 'playwright-core'

import { bundleConsole } from '../../scripts/console-bundle.ts'
import type { Bench } from './bench.ts'
import { budgetTable, type Measured } from './console/budgets.ts'
import { openTab, type Tab } from './console/tab.ts'
import { type Connection, encodeRequest, openConnection, pause, sendAll } from './http-load.ts'
import { type ClusterUnderTest, startUp, type Target } from './up-under-test.ts'

/** `PODS=10000 UPDATE_SECONDS=10 npm run bench -- console`. */
const PODS = Number(process.env['PODS'] ?? 50_000)
const UPDATE_SECONDS = Number(process.env['UPDATE_SECONDS'] ?? 60)
const UPDATES_PER_SECOND = 500
const NAMESPACES = 20
const LIST = '/ui/c/local/core/v1/pods'
const WRITERS = 8
const COMPLETE_MS = 180_000

export const bench: Bench = {
  about: `${PODS} pods in Chromium, then ${UPDATES_PER_SECOND} updates a second for ${UPDATE_SECONDS} s`,
  async run() {
    const folder = await mkdtemp(join(tmpdir(), 'hyperkube-bench-console-'))
    const { first } = await bundleConsole(join(folder, 'page'))
    const cluster = await startUp(folder, 0)
    try {
      await cluster.nodesReady()
      await createPods(cluster)
      const link = (await readFile(join(folder, 'data', 'console-link'), 'utf8')).trim()
      const ours = await measureConsole(cluster, link)
      const plain = await measurePlain((await readFile(join(folder, 'data', 'console-link'), 'utf8')).trim())
      return [budgetTable(`a list of ${PODS} pods`, { firstPageKb: first / 1000, ...ours }, plain)]
    } finally {
      await cluster.stop()
      await rm(folder, { recursive: true, force: true })
    }
  },
}

const namespaceOf = (pod: number): string => `team-${pod % NAMESPACES}`
const nameOf = (pod: number): string => `web-7887448d46-${pod.toString(36).padStart(5, '0')}`

async function createPods(cluster: Target): Promise<void> {
  const post = (path: string, object: object): Buffer =>
    encodeRequest({ method: 'POST', path, body: JSON.stringify(object) })
  const names = Array.from({ length: NAMESPACES }, (_, at) => namespaceOf(at))
  await sendAll(
    cluster,
    names.map((name) => post('/api/v1/namespaces', { metadata: { name } })),
  )
  // The controller makes their service accounts.
  await pause(3000)
  // No scheduler handles them, so they cost nothing later.
  const spec = { schedulerName: 'none', containers: [{ name: 'web', image: 'registry.example/team/web:1.4.2' }] }
  await sendAll(
    cluster,
    Array.from({ length: PODS }, (_, pod) => {
      const labels = { app: `app-${pod % 200}`, 'pod-template-hash': '7887448d46' }
      return post(`/api/v1/namespaces/${namespaceOf(pod)}/pods`, { metadata: { name: nameOf(pod), labels }, spec })
    }),
  )
}

async function measureConsole(cluster: ClusterUnderTest, link: string): Promise<Measured> {
  await using tab = await openTab()
  const { page } = tab
  await page.goto(link)
  await page.waitForSelector('.frame')
  const startMs = performance.now()
  await page.goto(new URL(LIST, link).href, { waitUntil: 'commit' })
  await page.waitForSelector('.cell-name a')
  const firstRowsMs = performance.now() - startMs
  await page.waitForSelector('.state-live', { timeout: COMPLETE_MS })
  const completeMs = performance.now() - startMs
  const firstPaintMs = await page.evaluate<number>(
    `performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0`,
  )
  const sortMs = await measureSort(page)
  const frameMs = await longestFrame(page)
  const filterMs = await measureFilter(page)
  const pageHeapMb = await page.evaluate<number>('performance.memory.usedJSHeapSize / 1e6')
  const memory = tab.memory()
  const updates = await measureUpdates(cluster, tab)
  return { firstPaintMs, firstRowsMs, completeMs, sortMs, filterMs, frameMs, pageHeapMb, ...memory, ...updates }
}

/** By name, then in the opposite order: until the first row is another one. */
function measureSort(page: Page): Promise<number> {
  return page.evaluate<number>(`(async () => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve))
    const button = [...document.querySelectorAll('th button')].find((one) => one.textContent.startsWith('Name') && !one.textContent.startsWith('Namespace'))
    const first = () => document.querySelector('.cell-name a').textContent
    button.click()
    for (let frames = 0; frames < 60; frames++) await frame()
    const before = first()
    const startMs = performance.now()
    button.click()
    while (first() === before) await frame()
    return performance.now() - startMs
  })()`)
}

async function longestFrame(page: Page): Promise<number> {
  const frames = await page.evaluate<number[]>(`(async () => {
    const box = document.querySelector('.grid')
    const frames = []
    let lastMs = performance.now()
    for (let step = 0; step < 300; step++) {
      box.scrollTop += 777
      await new Promise((resolve) => requestAnimationFrame(resolve))
      const nowMs = performance.now()
      frames.push(nowMs - lastMs)
      lastMs = nowMs
    }
    box.scrollTop = 0
    return frames
  })()`)
  return Math.max(...frames)
}

async function measureFilter(page: Page): Promise<number> {
  const wanted = `${(PODS / 200).toLocaleString('en')} of`
  return page.evaluate<number>(`new Promise((resolve) => {
    const field = document.querySelector('.filter')
    const startMs = performance.now()
    field.value = 'app=app-7'
    field.dispatchEvent(new Event('input', { bubbles: true }))
    const look = () => {
      if (!document.querySelector('.state').textContent.includes('${wanted}')) return requestAnimationFrame(look)
      const tookMs = performance.now() - startMs
      field.value = ''
      field.dispatchEvent(new Event('input', { bubbles: true }))
      resolve(tookMs)
    }
    look()
  })`)
}

/** Labels of pods change at a steady rate. The last change is one that the page must show. */
async function measureUpdates(cluster: Target, tab: Tab): Promise<Measured> {
  const connections = await Promise.all(Array.from({ length: WRITERS }, () => openConnection(cluster)))
  const startMs = performance.now()
  const cpuMs = tab.cpuMs()
  await Promise.all(connections.map((connection, at) => write(connection, at, startMs)))
  const rendererPercent = ((tab.cpuMs() - cpuMs) / (performance.now() - startMs)) * 100
  const [last] = connections
  await tab.page.fill('.filter', 'mark=last')
  const markedMs = performance.now()
  await last?.send(labelRequest(PODS - 1, 'last'))
  await tab.page.evaluate(`new Promise((resolve) => {
    const look = () =>
      document.querySelector('.state')?.textContent.startsWith('1 of') ? resolve() : requestAnimationFrame(look)
    look()
  })`)
  const lagMs = performance.now() - markedMs
  for (const { socket } of connections) socket.destroy()
  return { rendererPercent, lagMs }
}

async function write({ send }: Connection, writer: number, startMs: number): Promise<void> {
  const everyMs = (1000 * WRITERS) / UPDATES_PER_SECOND
  for (let turn = 0; turn * everyMs < UPDATE_SECONDS * 1000; turn++) {
    const waitMs = startMs + turn * everyMs - performance.now()
    if (waitMs > 0) await pause(waitMs)
    const { status, text } = await send(labelRequest((turn * WRITERS + writer) % PODS, String(turn)))
    if (status !== 200) throw new Error(`The server answered ${status}: ${text}`)
  }
}

function labelRequest(pod: number, mark: string): Buffer {
  return encodeRequest({
    method: 'PATCH',
    path: `/api/v1/namespaces/${namespaceOf(pod)}/pods/${nameOf(pod)}`,
    headers: { 'content-type': 'application/merge-patch+json' },
    body: JSON.stringify({ metadata: { labels: { mark } } }),
  })
}

/** All objects as JSON, and a row in the document for each. */
async function measurePlain(link: string): Promise<Measured> {
  await using tab = await openTab()
  const { page } = tab
  await page.goto(link)
  await page.waitForSelector('.frame')
  const completeMs = await page.evaluate<number>(`(async () => {
    const startMs = performance.now()
    const { items } = await (await fetch('/k8s/clusters/local/api/v1/pods')).json()
    globalThis.kept = items
    const table = document.createElement('table')
    for (const { metadata, spec, status } of items) {
      const row = table.insertRow()
      const texts = [metadata.namespace, metadata.name, status.phase, spec.nodeName, metadata.creationTimestamp]
      for (const text of texts) row.insertCell().textContent = text
    }
    document.body.replaceChildren(table)
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
    return performance.now() - startMs
  })()`)
  const pageHeapMb = await page.evaluate<number>('performance.memory.usedJSHeapSize / 1e6')
  return { firstRowsMs: completeMs, completeMs, pageHeapMb, ...tab.memory() }
}
