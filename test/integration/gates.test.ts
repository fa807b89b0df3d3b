import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { ofOurs, refused, startWire, type Wire } from './wire/server.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'

describe('API server with other feature gates and storage formats', ofOurs, () => {
  let wire: Wire
  before(async () => {
    wire = await startWire({
      flags: [
        '--datastore=sqlite:store.db',
        '--storage-media-type=application/vnd.kubernetes.protobuf',
        '--feature-gates=APIResponseCompression=false,StorageVersionHash=false,WatchList=false,ShardedListAndWatch=true',
        '--enable-aggregator-routing',
      ],
    })
  })
  after(() => wire.stop())

  it('logs settings without effect', () => {
    assert.match(
      wire.log(),
      /--feature-gates=ShardedListAndWatch=true has no effect: lists and watches are not sharded/,
    )
    assert.match(
      wire.log(),
      /--enable-aggregator-routing has no effect: the server always calls aggregated API servers/,
    )
    assert.doesNotMatch(wire.log(), /StorageVersionHash/)
  })

  it('stores and reads protobuf', async () => {
    await wire.must('POST', MAPS, { metadata: { name: 'one' }, data: { greeting: 'hello' } })
    const stored = ['store.db', 'store.db-wal'].map((name) => readFileSync(join(wire.dir, name), 'latin1')).join('')
    assert.ok(stored.includes('k8s\0\n\x0f\n\x02v1\x12\tConfigMap') && !stored.includes('"greeting"'))
    assert.deepEqual((await wire.must('GET', `${MAPS}/one`)).data, { greeting: 'hello' })
  })

  it('compresses no responses', async () => {
    await wire.must('POST', MAPS, { metadata: { name: 'large' }, data: { a: 'x'.repeat(300_000) } })
    const { headers } = await wire.request('GET', MAPS, { headers: { 'accept-encoding': 'gzip' } })
    assert.equal(headers['content-encoding'], undefined)
  })

  it('includes no storage version hashes in discovery', async () => {
    const { resources } = await wire.must('GET', '/api/v1')
    assert.ok(resources.length > 20)
    for (const resource of resources) assert.equal(resource.storageVersionHash, undefined, resource.name)
  })

  it('sends no initial events in a watch', async () => {
    const asked = wire.request('GET', `${MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`)
    await refused(asked, 422, {
      reason: 'Invalid',
      message:
        'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled',
    })
  })
})
