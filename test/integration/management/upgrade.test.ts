/**
 * Tests a management server on a data directory of an older version: it updates definitions and roles, and keeps the
 * objects.
 */
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'

import { freePort, Replica } from './replica-bed.ts'

const CRD =
  '/k8s/clusters/local/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusters.management.hyperkube.io'
const ROLE = '/k8s/clusters/local/apis/management.hyperkube.io/v1/roles/metrics-view'

describe('hyperkube server on the data of an older version', { timeout: 120_000 }, () => {
  let server: Replica
  let administrator: string

  before(async () => {
    const port = await freePort()
    server = new Replica(port, { datastore: 'sqlite', serverUrl: `https://127.0.0.1:${port}`, token: undefined })
    await server.start()
    administrator = await server.logIn()
  })
  after(async () => {
    await server.end('SIGKILL')
    rmSync(server.dataDir, { recursive: true, force: true })
  })

  it('updates definitions and roles at the start', async () => {
    const token = administrator
    const made = await server.request('POST', '/v3/clusters', { token, body: { displayName: 'old' } })
    const name = made.body['cluster'].metadata.name as string
    const { body: definition } = await server.request('GET', CRD, { token })
    const [version] = definition['spec'].versions
    delete version.schema.openAPIV3Schema.properties.status.properties.agent.properties.replica
    assert.equal((await server.request('PUT', CRD, { token, body: definition })).status, 200)
    assert.equal((await server.request('DELETE', ROLE, { token })).status, 200)
    await server.end('SIGTERM')
    await server.start()
    const { body: updated } = await server.request('GET', CRD, { token })
    const { properties } = updated['spec'].versions[0].schema.openAPIV3Schema.properties.status.properties.agent
    assert.equal(properties.replica.type, 'string')
    assert.equal((await server.request('GET', ROLE, { token })).status, 200)
    assert.equal((await server.request('GET', `/v3/clusters/${name}`, { token })).status, 200)
  })
})
