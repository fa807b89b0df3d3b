/** Tests the parameter that asks for Tables over a WebSocket. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { tableWatch } from './table-watch.ts'

describe('tableWatch()', () => {
  const cases: readonly (readonly [path: string, rest: string, isTable: boolean])[] = [
    ['/api/v1/pods?hk-as=Table&watch=1', '/api/v1/pods?watch=1', true],
    ['/api/v1/pods?watch=1&hk-as=Table', '/api/v1/pods?watch=1', true],
    ['/api/v1/pods?hk-as=Table', '/api/v1/pods', true],
    ['/api/v1/pods?watch=1', '/api/v1/pods?watch=1', false],
    ['/api/v1/pods?hk-as=Tables', '/api/v1/pods?hk-as=Tables', false],
    ['/api/v1/pods?x=hk-as=Table', '/api/v1/pods?x=hk-as=Table', false],
  ]
  for (const [path, rest, isTable] of cases) {
    it(`reads ${path}`, () => {
      const found = tableWatch({ upgradeProtocol: 'websocket' }, path)
      assert.equal(found.path, rest)
      assert.equal(found.headers.accept?.includes('as=Table') ?? false, isTable)
    })
  }

  it('leaves other requests unchanged', () => {
    const path = '/api/v1/pods?hk-as=Table'
    assert.deepEqual(tableWatch({ upgradeProtocol: undefined }, path), { path, headers: {} })
  })
})
