import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { realClock, sleep } from '#lib/clock.ts'
import { stringifyYaml } from '#lib/yaml.ts'
import { startPlugin } from '#storage/encryption/kms-plugin.fixture.ts'

import { ofOurs, startWire, type Wire } from './wire/server.ts'

const SECRETS = '/api/v1/namespaces/default/secrets'
const CANARY = 'a canary that must not be seen'
const secret = (name: string): object => ({
  metadata: { name },
  stringData: { canary: CANARY },
})

/** Everything the store has on the disk. */
function onDisk({ dir }: Wire): string {
  return ['store.db', 'store.db-wal'].map((name) => readFileSync(join(dir, name), 'latin1')).join('')
}

function writeConfig(file: string, ...providers: object[]): void {
  const resources = [{ resources: ['secrets'], providers }]
  const text = stringifyYaml({ kind: 'EncryptionConfiguration', apiVersion: 'apiserver.config.k8s.io/v1', resources })
  writeFileSync(file, text, { mode: 0o600 })
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    assert.ok(tries < 600, 'it never happened')
    await sleep(realClock, 100)
  }
}

describe('Secrets at rest', ofOurs, () => {
  it('are sealed in a file of ours though nobody asked for it, with a key for the owner alone', async () => {
    await using wire = await startWire({ flags: ['--datastore=sqlite:store.db'] })
    await wire.must('POST', SECRETS, secret('one'))
    await wire.must('POST', '/api/v1/namespaces/default/configmaps', {
      metadata: { name: 'plain' },
      data: { a: 'seen' },
    })
    const stored = onDisk(wire)
    assert.ok(stored.includes('k8s:enc:secretbox:v1:hyperkube:'))
    assert.ok(!stored.includes(Buffer.from(CANARY).toString('base64')) && stored.includes('"seen"'))
    assert.equal(statSync(join(wire.dir, 'encryption.key')).mode & 0o777, 0o600)
    const { data } = await wire.must('GET', `${SECRETS}/one`)
    assert.equal(Buffer.from(data.canary, 'base64').toString(), CANARY)
  })

  it('are sealed with the keys of a plugin, change to another configuration, and are sealed anew when written unchanged', async (t) => {
    const plugin = await startPlugin(t)
    const file = join(plugin.socket, '..', 'encryption.yaml')
    const kms = { kms: { apiVersion: 'v2', name: 'vault', endpoint: `unix://${plugin.socket}` } }
    writeConfig(file, kms, { identity: {} })
    await using wire = await startWire({
      flags: [
        '--datastore=sqlite:store.db',
        `--encryption-provider-config=${file}`,
        '--encryption-provider-config-automatic-reload',
      ],
    })
    const made = await wire.must('POST', SECRETS, secret('one'))
    assert.ok(onDisk(wire).includes('k8s:enc:kms:v2:vault:'))
    assert.equal((await wire.request('GET', '/readyz/kms-providers')).text, 'ok')
    assert.match((await wire.request('GET', '/readyz?verbose')).text, /\[\+\]kms-providers ok/)
    const unchanged = await wire.must('PUT', `${SECRETS}/one`, made)
    assert.equal(unchanged.metadata.resourceVersion, made.metadata.resourceVersion)
    const keys = [{ name: 'box', secret: Buffer.alloc(32, 1).toString('base64') }]
    writeConfig(file, { secretbox: { keys } }, kms)
    await until(async () => {
      const { metadata } = await wire.must('PUT', `${SECRETS}/one`, unchanged)
      return metadata.resourceVersion !== made.metadata.resourceVersion
    })
    assert.ok(onDisk(wire).includes('k8s:enc:secretbox:v1:box:'))
    const { data } = await wire.must('GET', `${SECRETS}/one`)
    assert.equal(Buffer.from(data.canary, 'base64').toString(), CANARY)
  })

  it('are not written while the plugin is away, and the server says that it is not ready', async (t) => {
    const plugin = await startPlugin(t, false)
    const file = join(plugin.socket, '..', 'encryption.yaml')
    writeConfig(file, {
      kms: { apiVersion: 'v2', name: 'vault', endpoint: `unix://${plugin.socket}`, timeout: '200ms' },
    })
    await using wire = await startWire({ flags: [`--encryption-provider-config=${file}`] })
    const refused = await wire.request('POST', SECRETS, { body: secret('one') })
    assert.equal(refused.status, 500)
    assert.equal(refused.json().message, 'Internal error occurred: got unexpected nil transformer')
    assert.equal((await wire.request('GET', '/readyz/kms-providers')).status, 500)
    assert.equal((await wire.request('GET', '/livez')).status, 200)
    await plugin.start()
    await until(async () => (await wire.request('GET', '/readyz')).status === 200)
    await wire.must('POST', SECRETS, secret('one'))
  })
})
