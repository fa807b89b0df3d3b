/** Tests that large lists wait for memory, that users take turns, and that the memory is always released. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
/** Ten megabytes together, which is more than a list may use without a reservation. */
const COUNT = 20
const TEXT = 'x'.repeat(500 << 10)
/** More than all the room there is, if none of it came back. */
const LISTS = 60

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane()
  for (let at = 0; at < COUNT; at++) {
    const answer = await plane.request('POST', MAPS, { metadata: { name: `m-${at}` }, data: { text: TEXT } })
    assert.equal(answer.status, 201)
  }
})
after(() => plane.stop())

describe('large lists', () => {
  for (const [form, accept] of [
    ['JSON', 'application/json'],
    ['YAML', 'application/yaml'],
    ['tables', 'application/json;as=Table;v=v1;g=meta.k8s.io'],
  ] as const) {
    it(`are sent in sequence and concurrently as ${form}`, async () => {
      const turns = form === 'YAML' ? 4 : LISTS
      const answers = await Promise.all(
        Array.from({ length: turns }, () => plane.request('GET', MAPS, undefined, { accept })),
      )
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    })
  }

  it('release their memory if the request is refused', async () => {
    for (let turn = 0; turn < LISTS; turn++) {
      const refused = await plane.request('GET', `${MAPS}?includeObject=nonsense`, undefined, {
        accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
      })
      assert.equal(refused.status, 400)
    }
    assert.equal((await plane.request('GET', MAPS)).status, 200)
  })
})
