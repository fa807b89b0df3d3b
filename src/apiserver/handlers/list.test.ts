import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ConfigMaps } from '#apis/core/v1.ts'

import { systemRequest } from '../bootstrap/ensure.ts'
import type { Call, WholeAnswer } from '../call.ts'
import type { Registry } from '../registry/registry.ts'
import { createServers } from '../registry/servers.fixture.ts'
import { requestInfoOf } from '../request-info.ts'
import { listObjects } from './list.ts'

const PATH = '/api/v1/namespaces/default/configmaps'

function callOf(query: string): Call {
  const parameters = new URLSearchParams(query)
  return {
    method: 'GET',
    info: requestInfoOf('GET', PATH, parameters),
    query: parameters,
    header: (name: string) => (name === 'accept' ? 'application/json' : ''),
    user: { name: 'jane', uid: '', groups: [], extra: {} },
    signal: new AbortController().signal,
  } as unknown as Call
}

async function fill(registry: Registry, count: number, bytes: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    const metadata = { name: `m-${at}`, namespace: 'default', labels: { parity: at % 2 === 0 ? 'even' : 'odd' } }
    const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata, data: { text: 'x'.repeat(bytes) } }
    await registry.storeOf(ConfigMaps)!.create(systemRequest(ConfigMaps, 'default'), object)
  }
}

/** Lists with a room that only counts: what was asked of it, and how much of that was given back. */
async function listing(
  registry: Registry,
  query: string,
): Promise<{ readonly entered: string[]; readonly left: () => number; readonly answer: WholeAnswer }> {
  const found = registry.find({ group: '', version: 'v1', resource: 'configmaps' })!
  const entered: string[] = []
  let left = 0
  const answers = {
    enter(user: string, bytes: number): Promise<() => void> {
      entered.push(`${user} ${Math.floor(bytes / (1 << 20))}`)
      return Promise.resolve(() => void left++)
    },
  }
  const view = { ...found, services: { ...found.services, answers } }
  const answer = (await listObjects(callOf(query), view)) as WholeAnswer
  return { entered, left: () => left, answer }
}

describe('a list', () => {
  it('asks for room when it is large, as much as it selects, and gives it back when it was sent', async () => {
    await using servers = createServers()
    const registry = await servers.open([ConfigMaps])
    await fill(registry, 20, 1 << 20)
    const whole = await listing(registry, '')
    assert.deepEqual(whole.entered, ['jane 20'])
    assert.equal(whole.left(), 0)
    whole.answer.sent?.()
    assert.equal(whole.left(), 1)
    assert.deepEqual((await listing(registry, 'labelSelector=parity%3Dodd')).entered, ['jane 10'])
    assert.deepEqual((await listing(registry, 'labelSelector=parity%3Dnone')).entered, [])
    assert.deepEqual((await listing(registry, 'limit=500')).entered, [], 'pages are small')
  })

  it('waits for nobody when it is small', async () => {
    await using servers = createServers()
    const registry = await servers.open([ConfigMaps])
    await fill(registry, 20, 1000)
    assert.deepEqual((await listing(registry, '')).entered, [])
  })
})
