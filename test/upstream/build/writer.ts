/**
 * Writes to a ConfigMap every 100 ms, even if earlier writes have not ended, and reports the longest time without a
 * successful write. `node writer.ts KUBECONFIG SERVER`, until its standard input ends.
 */
import { readFile } from 'node:fs/promises'

import { every, realClock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'

const EVERY_MS = 100
const TIMEOUT_MS = 10_000

const [, , kubeconfig = '', server = ''] = process.argv
const { clusters, users } = parseYaml(await readFile(kubeconfig, 'utf8')) as {
  clusters: { cluster: Record<string, string> }[]
  users: { user: Record<string, string> }[]
}
const decoded = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString()
const client = createHttpClient({
  clock: realClock,
  tls: {
    ca: decoded(clusters[0]?.cluster['certificate-authority-data']),
    certificate: decoded(users[0]?.user['client-certificate-data']),
    key: decoded(users[0]?.user['client-key-data']),
  },
})

const path = '/api/v1/namespaces/default/configmaps'
await client
  .request({
    method: 'POST',
    url: `${server}${path}`,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ metadata: { name: 'writer' } }),
    timeoutMs: TIMEOUT_MS,
  })
  .then((answer) => answer.text(1 << 20))

let count = 0
let written = 0
let failed = 0
let gapMs = 0
let lastMs = realClock.elapsed()
/** The errors of failed writes, each with the time since the last successful one. */
const said = new Map<string, number[]>()
/** When the longest time without one began. */
let gapAt = ''
const note = (failure?: Error): void => {
  const sinceMs = Math.round(realClock.elapsed() - lastMs)
  if (failure !== undefined) {
    failed++
    said.set(failure.message, [...(said.get(failure.message) ?? []), sinceMs])
    return
  }
  written++
  if (sinceMs > gapMs) gapAt = new Date(realClock.now() - sinceMs).toISOString()
  gapMs = Math.max(gapMs, sinceMs)
  lastMs = realClock.elapsed()
}
const write = async (): Promise<void> => {
  const answer = await client.request({
    method: 'PATCH',
    url: `${server}${path}/writer`,
    headers: { 'content-type': 'application/merge-patch+json' },
    body: JSON.stringify({ data: { count: String(count++) } }),
    timeoutMs: TIMEOUT_MS,
  })
  const text = await answer.text(1 << 20)
  if (answer.status !== 200) throw new Error(`${answer.status} ${text.slice(0, 300)}`)
}
const timer = every(realClock, EVERY_MS, () => {
  write().then(
    () => note(),
    (error: Error) => note(error),
  )
})
process.stdout.write('writing\n')
process.stdin.resume().once('end', () => {
  timer.cancel()
  gapMs = Math.max(gapMs, realClock.elapsed() - lastMs)
  process.stdout.write(
    `${JSON.stringify({ written, failed, gapMs: Math.round(gapMs), gapAt, said: Object.fromEntries(said) })}\n`,
  )
  client.close()
})
