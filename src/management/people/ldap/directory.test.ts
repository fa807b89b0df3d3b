import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { LdapSettings } from '../../kinds/auth-provider.ts'
import type { LdapConnection, LdapEntry, LdapSearch } from './connection.ts'
import { type DirectoryAccount, findAccount } from './directory.ts'

const BASE = 'dc=example,dc=org'
const JANE = `uid=jane,ou=people,${BASE}`
const SERVICE = `cn=hyperkube,${BASE}`
const SETTINGS: LdapSettings = {
  url: 'ldaps://ldap.example.org',
  bindDN: SERVICE,
  bindSecretName: 'ldap',
  users: { searchBase: `ou=people,${BASE}` },
  groups: { searchBase: `ou=groups,${BASE}` },
}

interface FakeDirectory {
  /** By filter. */
  readonly entries?: Readonly<Record<string, readonly LdapEntry[]>>
  readonly passwords?: Readonly<Record<string, string>>
  readonly requests?: string[]
}

function fake({ entries = {}, passwords = {}, requests = [] }: FakeDirectory): LdapConnection {
  return {
    async bind(dn, password) {
      requests.push(`bind ${dn}`)
      return { [SERVICE]: 'service', ...passwords }[dn] === password
    },
    async search({ base, filter }: LdapSearch) {
      requests.push(`search ${base} ${filter}`)
      return entries[filter] ?? []
    },
    close: () => undefined,
  }
}

const entry = (dn: string, attributes: Readonly<Record<string, string>>): LdapEntry => ({
  dn,
  attributes: Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, [value]])),
})
const jane = entry(JANE, { uid: 'jane', cn: 'Jane Doe', entryuuid: 'uuid-1' })
const people = (filter: string): string => `(&(objectClass=person)${filter})`
const groups = (...dns: readonly string[]): string => {
  const terms = dns.map((dn) => `(member=${dn})`)
  return `(&(objectClass=groupOfNames)${terms.length === 1 ? terms[0] : `(|${terms.join('')})`})`
}
const group = (name: string): LdapEntry => entry(`cn=${name},ou=groups,${BASE}`, { cn: name })
const dn = (name: string): string => group(name).dn

function check(
  directory: FakeDirectory,
  password = 'secret',
  { settings = SETTINGS, username = 'jane' }: { settings?: LdapSettings; username?: string } = {},
): Promise<DirectoryAccount | undefined> {
  return findAccount(fake(directory), { settings, bindPassword: 'service' }, { username, password })
}

const KNOWN: FakeDirectory = { entries: { [people('(uid=jane)')]: [jane] }, passwords: { [JANE]: 'secret' } }

describe('findAccount() in an LDAP directory', () => {
  it('returns subject, username, display name and groups', async () => {
    const account = { subject: 'uuid-1', username: 'jane', displayName: 'Jane Doe', groups: [] }
    assert.deepEqual(await check(KNOWN), account)
  })

  it('refuses a wrong password, an unknown name and an empty password', async () => {
    assert.equal(await check(KNOWN, 'wrong'), undefined)
    assert.equal(await check(KNOWN, 'secret', { username: 'john' }), undefined)
    const requests: string[] = []
    assert.equal(await check({ ...KNOWN, passwords: { [JANE]: '' }, requests }, ''), undefined)
    assert.deepEqual(requests, [])
    assert.equal(await check(KNOWN, 'x'.repeat(1025)), undefined)
    assert.equal(await check(KNOWN, 'secret', { username: 'x'.repeat(129) }), undefined)
  })

  it('sends as many requests for an unknown name as for a wrong password', async () => {
    const [wrong, unknown]: string[][] = [[], []]
    await check({ ...KNOWN, ...(wrong && { requests: wrong }) }, 'wrong')
    await check({ ...KNOWN, ...(unknown && { requests: unknown }) }, 'wrong', { username: 'john' })
    assert.equal(unknown?.length, wrong?.length)
  })

  it('escapes filter characters in the username', async () => {
    for (const username of ['*', 'jane)(uid=*', 'jane)(|(uid=*', '*)(objectClass=*', 'jane\0', '\\6aane']) {
      const requests: string[] = []
      assert.equal(await check({ ...KNOWN, requests }, 'secret', { username }), undefined)
      assert.ok(/^search \S+ \(&\(objectClass=person\)\(uid=[^()*]*\)\)$/.test(requests[1] ?? ''), username)
    }
  })

  it('fails if several accounts match, or if the account has no identity attribute', async () => {
    const two = [jane, { ...jane, dn: `uid=jane,ou=other,${BASE}` }]
    await assert.rejects(check({ ...KNOWN, entries: { [people('(uid=jane)')]: two } }), /Several accounts/)
    const nameless = [entry(JANE, { uid: 'jane' })]
    await assert.rejects(check({ ...KNOWN, entries: { [people('(uid=jane)')]: nameless } }), /entryUUID/)
  })

  it('fails if the server refuses the service account, or its password is empty', async () => {
    await assert.rejects(check({ ...KNOWN, passwords: { ...KNOWN.passwords, [SERVICE]: 'other' } }), /refuses bindDN/)
    const options = { settings: SETTINGS, bindPassword: '' }
    await assert.rejects(findAccount(fake(KNOWN), options, { username: 'jane', password: 'secret' }), /is empty/)
  })

  it('finds nested groups, each once and up to maxDepth', async () => {
    const entries = {
      ...KNOWN.entries,
      [groups(JANE)]: [group('devs'), group('all')],
      [groups(dn('devs'), dn('all'))]: [group('staff'), group('all')],
      // A circle.
      [groups(dn('staff'))]: [group('devs')],
    }
    assert.deepEqual((await check({ ...KNOWN, entries }))?.groups, ['devs', 'all', 'staff'])
    const settings = { ...SETTINGS, groups: { searchBase: `ou=groups,${BASE}`, maxDepth: 0 } }
    assert.deepEqual((await check({ ...KNOWN, entries }, 'secret', { settings }))?.groups, ['devs', 'all'])
  })

  it('searches groups with the service account', async () => {
    const requests: string[] = []
    await check({ ...KNOWN, requests })
    const order = requests.map((line) => line.replace(/ \(.*/, ''))
    const search = `search ou=people,${BASE}`
    assert.deepEqual(order, [`bind ${SERVICE}`, search, `bind ${JANE}`, `bind ${SERVICE}`, `search ou=groups,${BASE}`])
  })

  it('fails for more than 1000 groups', async () => {
    const many = Array.from({ length: 1001 }, (_, n) => group(`g${n}`))
    const entries = { ...KNOWN.entries, [groups(JANE)]: many }
    await assert.rejects(check({ ...KNOWN, entries }), /more than 1000 groups/)
  })

  it('finds groups by username', async () => {
    const settings = {
      ...SETTINGS,
      groups: {
        searchBase: `ou=groups,${BASE}`,
        filter: '(objectClass=posixGroup)',
        memberAttribute: 'memberUid',
        memberValue: 'username',
      },
    } as const
    const entries = { ...KNOWN.entries, '(&(objectClass=posixGroup)(memberUid=jane))': [group('unix')] }
    assert.deepEqual((await check({ ...KNOWN, entries }, 'secret', { settings }))?.groups, ['unix'])
  })
})
