import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { crc32 } from 'node:zlib'

import { realClock, sleep } from '#lib/clock.ts'
import { stringifyYaml } from '#lib/yaml/yaml.ts'
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

function writeConfig(file: string, names: readonly string[], ...providers: object[]): void {
  const resources = [{ resources: names, providers }]
  const text = stringifyYaml({ kind: 'EncryptionConfiguration', apiVersion: 'apiserver.config.k8s.io/v1', resources })
  writeFileSync(file, text, { mode: 0o600 })
}

/** Puts the value of one key under another, as a person could who can write to the file of the store. */
function moveValue(store: string, from: string, to: string): void {
  using db = new DatabaseSync(store)
  const last = 'FROM log WHERE key = ? ORDER BY id DESC LIMIT 1'
  const source = db.prepare(`SELECT value ${last}`).get(from)
  const row = `id || ' ' || key || ' ' || prev || ' ' || created || ' ' || lease`
  const target = db.prepare(`SELECT id, ${row} AS row ${last}`).get(to)
  assert.ok(source?.['value'] instanceof Uint8Array && typeof target?.['row'] === 'string')
  const crc = crc32(source['value'], crc32(target['row']))
  db.prepare('UPDATE log SET value = ?, crc = ? WHERE id = ?').run(source['value'], crc, target['id'] ?? null)
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    assert.ok(tries < 600, 'it never happened')
    await sleep(realClock, 100)
  }
}

describe('Secrets at rest', ofOurs, () => {
  it('are encrypted in SQLite by default, with a key that only the owner can read', async () => {
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

  it('are encrypted with a KMS plugin, stay readable under another configuration, and are encrypted again on an unchanged write', async (t) => {
    const plugin = await startPlugin(t)
    const file = join(plugin.socket, '..', 'encryption.yaml')
    const kms = { kms: { apiVersion: 'v2', name: 'vault', endpoint: `unix://${plugin.socket}` } }
    writeConfig(file, ['secrets'], kms, { identity: {} })
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
    writeConfig(file, ['secrets'], { secretbox: { keys } }, kms)
    await until(async () => {
      const { metadata } = await wire.must('PUT', `${SECRETS}/one`, unchanged)
      return metadata.resourceVersion !== made.metadata.resourceVersion
    })
    assert.ok(onDisk(wire).includes('k8s:enc:secretbox:v1:box:'))
    const { data } = await wire.must('GET', `${SECRETS}/one`)
    assert.equal(Buffer.from(data.canary, 'base64').toString(), CANARY)
  })

  it('are not served if their value was stored under the key of another object', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'hyperkube-moved-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const [file, store] = [join(folder, 'encryption.yaml'), join(folder, 'store.db')]
    const keys = [{ name: 'box', secret: Buffer.alloc(32, 1).toString('base64') }]
    writeConfig(file, ['*.*'], { secretbox: { keys } })
    const flags = [`--datastore=sqlite:${store}`, `--encryption-provider-config=${file}`]
    const [mine, map] = [`${SECRETS}/mine`, '/api/v1/namespaces/default/configmaps/victim']
    {
      await using wire = await startWire({ flags })
      for (const name of ['victim', 'mine']) await wire.must('POST', SECRETS, secret(name))
      await wire.must('POST', '/api/v1/namespaces/default/configmaps', { metadata: { name: 'victim' } })
    }
    moveValue(store, '/registry/secrets/default/victim', '/registry/secrets/default/mine')
    moveValue(store, '/registry/secrets/default/victim', '/registry/configmaps/default/victim')
    await using wire = await startWire({ flags })
    for (const path of [mine, map]) {
      const { status, text } = await wire.request('GET', path)
      assert.equal(status, 500, `${path}: ${text}`)
      assert.ok(!text.includes(Buffer.from(CANARY).toString('base64')))
    }
  })

  it('cannot be written while the KMS plugin is unreachable, and the server is not ready', async (t) => {
    const plugin = await startPlugin(t, false)
    const file = join(plugin.socket, '..', 'encryption.yaml')
    writeConfig(file, ['secrets'], {
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
