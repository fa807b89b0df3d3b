import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ComponentStatus } from '#apis/core/v1.ts'
import { schemaFor } from '#apis/schemas.ts'
import { ByteMemo } from '#apiserver/registry/byte-memo.ts'
import type { Services } from '#apiserver/registry/services.ts'
import type { Call } from '#component/requests/call.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { StatusError } from '#meta/status.ts'

import { type ComponentHealth, defineComponentStatus } from './componentstatus.ts'

const health: Readonly<Record<string, ComponentHealth>> = {
  scheduler: { status: 'False', message: 'gone' },
  'etcd-0': { status: 'True', message: 'ok' },
}

const probed: string[] = []
const { handlers, deprecation } = defineComponentStatus(
  new Map(
    Object.entries(health).map(([name, how]) => [
      name,
      () => {
        probed.push(name)
        return Promise.resolve(how)
      },
    ]),
  ),
)
const services = {
  schemaFor,
  clock: createVirtualClock(),
  memos: new ByteMemo(1 << 20),
  isEnabled: () => true,
} as unknown as Services

async function ask(verb: string, name = '', query = '', accept = 'application/json'): Promise<string> {
  const call = {
    method: 'GET',
    info: { verb, name, namespace: '' },
    query: new URLSearchParams(query),
    header: (header: string) => (header === 'accept' ? accept : ''),
    signal: new AbortController().signal,
  } as unknown as Call
  const answer = await handlers[verb]?.(call, services)
  assert.ok(answer !== undefined && 'body' in answer && typeof answer.body === 'string')
  return answer.body
}

describe('ComponentStatus', () => {
  it('lists all components', async () => {
    const { items } = JSON.parse(await ask('list')) as { items: ComponentStatus[] }
    assert.deepEqual(items, [
      { metadata: { name: 'scheduler' }, conditions: [{ type: 'Healthy', status: 'False', message: 'gone' }] },
      { metadata: { name: 'etcd-0' }, conditions: [{ type: 'Healthy', status: 'True', message: 'ok' }] },
    ])
  })

  it('probes only the named component', async () => {
    probed.length = 0
    const status = JSON.parse(await ask('get', 'etcd-0')) as ComponentStatus
    assert.deepEqual([status.kind, status.metadata.name, probed], ['ComponentStatus', 'etcd-0', ['etcd-0']])
  })

  it('can be selected by name, and only by label selectors that match no labels', async () => {
    const names = async (query: string): Promise<unknown[]> =>
      (JSON.parse(await ask('list', '', query)) as { items: ComponentStatus[] }).items.map(
        ({ metadata }) => metadata.name,
      )
    assert.deepEqual(await names('fieldSelector=metadata.name%3Detcd-0'), ['etcd-0'])
    assert.deepEqual(await names('labelSelector=a%3Db'), [])
  })

  it('prints a table', async () => {
    const table = await ask('list', '', '', 'application/json;as=Table;g=meta.k8s.io;v=v1')
    const { rows } = JSON.parse(table) as { rows: { cells: unknown[] }[] }
    assert.deepEqual(
      rows.map(({ cells }) => cells),
      [
        ['scheduler', 'Unhealthy', 'gone', ''],
        ['etcd-0', 'Healthy', 'ok', ''],
      ],
    )
  })

  it("responds with upstream's text for an unknown component", async () => {
    await assert.rejects(ask('get', 'x'), (error) => {
      return error instanceof StatusError && error.message === 'componentstatus "x" not found'
    })
    assert.equal(deprecation, 'v1 ComponentStatus is deprecated in v1.19+')
  })
})
