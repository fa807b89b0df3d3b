/** Tests which actions are possible on many objects, and that a failure does not stop the others. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { RequestError } from '../api/request.ts'
import type { Row } from '../lists/messages.ts'
import { bulkActionsFor, targetOf } from './bulk-actions.ts'
import { type BulkProgress, runBulk } from './run-bulk.ts'

const row = (name: string): Row => ({
  uid: `u-${name}`,
  namespace: 'web',
  name,
  version: '1',
  createdAt: 0,
  labels: {},
  cells: [],
})
const rest = { singular: '', isNamespaced: true, verbs: [], shortNames: [], subresources: [] }

describe('bulkActionsFor()', () => {
  const cases: readonly (readonly [kind: string, group: string, names: string])[] = [
    ['Deployment', 'apps', 'restart pause resume-rollout delete'],
    ['Node', '', 'cordon uncordon delete'],
    ['CronJob', 'batch', 'suspend resume delete'],
    ['Widget', 'example.com', 'delete'],
  ]
  for (const [kind, group, names] of cases) {
    it(`offers ${names} for ${kind}`, () => {
      const found = bulkActionsFor({ kind, group }).map(({ action }) => action.name)
      assert.equal(found.join(' '), names)
    })
  }

  it('deletes the object of the row and no newer one of its name', () => {
    const kind = { ...rest, group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment' }
    const [remove] = bulkActionsFor(kind).slice(-1)
    const request = remove?.plan(targetOf(kind, row('a')), { nowMs: 0, suffix: '' })
    assert.equal(request?.path, '/apis/apps/v1/namespaces/web/deployments/a')
    assert.partialDeepStrictEqual(request?.body, { preconditions: { uid: 'u-a' } })
  })
})

describe('runBulk()', () => {
  const rows = ['a', 'b', 'c', 'd', 'e', 'f'].map(row)

  it('goes on after failures, and reports each', async () => {
    const reports: BulkProgress[] = []
    const send = async ({ name }: Row): Promise<void> => {
      if (name === 'b') throw new RequestError({ code: 403, message: 'refused' })
    }
    const { done, failures } = await runBulk({
      rows,
      send,
      report: (progress) => reports.push(progress),
      signal: new AbortController().signal,
    })
    assert.equal(done, 6)
    assert.deepEqual(
      failures.map(({ row: { name }, message }) => `${name} ${message}`),
      ['b refused'],
    )
    assert.deepEqual(
      reports.map((report) => report.done),
      [1, 2, 3, 4, 5, 6],
    )
  })

  it('begins no more requests after the signal', async () => {
    const stop = new AbortController()
    const sent: string[] = []
    const send = async ({ name }: Row): Promise<void> => {
      sent.push(name)
      stop.abort()
    }
    await runBulk({ rows, send, report: () => undefined, signal: stop.signal })
    assert.deepEqual(sent, ['a'])
  })
})
