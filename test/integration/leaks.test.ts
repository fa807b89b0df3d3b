/** Tests that repeated failures of webhooks and watches give clear errors and leak nothing. */
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { Custom, definition, DEFINITIONS, type Json, object, specSchema } from './custom-kit.ts'
import { startWebhookServer, type WebhookServer } from './webhooks/webhook-server.ts'

const WATCHES = 100
const REQUESTS = 30
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'
const HOOKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'

let custom: Custom
let hook: WebhookServer
before(async () => {
  custom = await Custom.start()
  hook = await startWebhookServer()
})
after(async () => {
  await custom.plane.stop()
  await hook.close()
})

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Sockets and timers of this process, which is the server's too. */
function held(): Record<string, number> {
  const counts = Object.groupBy(process.getActiveResourcesInfo(), (name) => name)
  const count = (name: string): number => counts[name]?.length ?? 0
  return { sockets: count('TCPSocketWrap'), timers: count('Timeout') }
}

/** How many requests last, by the server's own count. */
async function lasting(): Promise<number> {
  const { text } = await custom.ask('GET', '/metrics')
  const lines = text.split('\n').filter((line) => line.startsWith('apiserver_longrunning_requests{'))
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

/** As much as before, and no more. Timers that come and go on their own may be fewer. */
async function isBack(before: Record<string, number>): Promise<void> {
  const isNoMore = (now: Record<string, number>): boolean =>
    Object.entries(before).every(([name, count]) => (now[name] ?? 0) <= count)
  await custom.eventually(async () => held(), isNoMore)
}

/** The remaining events of the watches; rejects if one is aborted. */
async function restOf(watches: readonly IncomingMessage[]): Promise<Json[][]> {
  const texts = await Promise.all(watches.map((watch) => watch.setEncoding('utf8').toArray() as Promise<string[]>))
  return texts.map((pieces) =>
    pieces
      .join('')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line)),
  )
}

async function configure(path: string, more: object = {}): Promise<void> {
  const webhook = {
    name: 'bad.ex.io',
    clientConfig: { url: hook.url(path), caBundle: hook.caBundle },
    rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    timeoutSeconds: 1,
    ...more,
  }
  await custom.must('POST', HOOKS, { metadata: { name: 'bad' }, webhooks: [webhook] })
}

function createMany(prefix: string): Promise<string[]> {
  const names = Array.from({ length: REQUESTS }, (_, at) => `${prefix}-${at}`)
  return Promise.all(names.map((name) => custom.refused('POST', CONFIG_MAPS, { metadata: { name } })))
}

describe('webhook that fails', () => {
  const failed = '500 Internal error occurred: failed calling webhook "bad.ex.io": failed to call webhook: '

  it('leaves no request and no connection after the timeouts if it hangs', async () => {
    hook.on('/hangs', () => undefined)
    await configure('/hangs')
    // The connections of this client stay; they are made before anything is counted.
    await createMany('warm')
    const before = held()
    const said = new Set(await createMany('hung'))
    assert.deepEqual(said, new Set([`${failed}Post "${hook.url('/hangs')}?timeout=1s": context deadline exceeded`]))
    await custom.eventually(
      async () => hook.open.size,
      (size) => size <= 1,
    )
    await isBack(before)
    await custom.must('DELETE', `${HOOKS}/bad`)
    await custom.must('POST', CONFIG_MAPS, { metadata: { name: 'hung-0' } })
  })

  it('leaves no connection if it returns garbage', async () => {
    const garbage: readonly (readonly [string, Parameters<WebhookServer['on']>[1], RegExp])[] = [
      ['/noise', () => '\u0000\u0001', /yaml: control characters are not allowed$/],
      ['/torn', (_, response) => void response.socket?.destroy(), /: EOF$/],
      [
        '/list',
        () => [1, 2],
        /couldn't get version\/kind; json parse error: json: cannot unmarshal array into Go value/,
      ],
    ]
    for (const [path, script, text] of garbage) {
      hook.on(path, script)
      await configure(path)
      await createMany('warm')
      const before = held()
      const said = new Set(await createMany('noise'))
      for (const one of said) {
        assert.ok(one.startsWith(failed), one)
        assert.match(one, text)
      }
      await isBack(before)
      await custom.must('DELETE', `${HOOKS}/bad`)
    }
  })
})

describe('CustomResourceDefinition deleted during a hundred watches', () => {
  const base = (version: string): string => `/apis/ex.io/${version}/namespaces/default/leaks`

  /** Those of half of them are converted by the webhook. */
  async function defineLeak(): Promise<WeakRef<object>> {
    hook.on('/convert', ({ review }) => {
      const { uid, objects, desiredAPIVersion: apiVersion } = (review as Json).request
      const convertedObjects = objects.map((one: object) => ({ ...one, apiVersion }))
      return { ...review, response: { uid, result: { status: 'Success' }, convertedObjects } }
    })
    const clientConfig = { url: hook.url('/convert'), caBundle: hook.caBundle }
    const conversion = { strategy: 'Webhook', webhook: { clientConfig, conversionReviewVersions: ['v1'] } }
    const schema = specSchema({ a: { type: 'string' } })
    const versions = [
      { name: 'v1', schema },
      { name: 'v2', schema },
    ]
    await custom.define(definition('Leak', { versions, spec: { conversion } }))
    for (const name of ['one', 'two']) await custom.must('POST', base('v1'), object('Leak', name))
    const { registry } = custom.plane.running.server
    const served = registry.find({ group: 'ex.io', version: 'v1', resource: 'leaks' })
    return new WeakRef(served?.store.collection as object)
  }

  it('sends deletions to each watch, ends all watches, and is released from memory', async () => {
    const watchersBefore = await lasting()
    const before = held()
    const collection = await defineLeak()
    const watches = await Promise.all(
      Array.from({ length: WATCHES }, (_, at) => custom.watch(`${base(at % 2 === 0 ? 'v1' : 'v2')}?watch=true`)),
    )
    assert.equal(await lasting(), watchersBefore + WATCHES)
    await custom.must('DELETE', `${DEFINITIONS}/leaks.ex.io`)
    for (const [at, events] of (await restOf(watches)).entries()) {
      const deleted = events.filter(({ type }) => type === 'DELETED').map((one) => one.object.metadata.name)
      assert.deepEqual(new Set(deleted), new Set(['one', 'two']), `watch ${at}`)
      assert.ok(events.every(({ type }) => type !== 'ERROR'))
    }
    await custom.gone('leaks.ex.io')
    assert.equal(await custom.refused('GET', `${base('v1')}?watch=true`), '404 404 page not found\n')
    assert.equal(await custom.eventually(lasting, (count) => count <= watchersBefore), watchersBefore)
    await isBack(before)
    await custom.eventually(
      async () => {
        collectGarbage()
        return collection.deref() === undefined
      },
      (isForgotten) => isForgotten,
    )
  })
})
