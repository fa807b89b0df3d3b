/**
 * Runs Debian's LDAP server slapd with users, nested groups and a cycle of groups. It refuses passwords without TLS.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'

import { end, freePort } from '../kube-apiserver.ts'
import type { CertificateFiles } from './certificate.ts'

export const BASE = 'dc=example,dc=org'
export const SERVICE = { dn: `cn=hyperkube,${BASE}`, password: 'secret of the service account' }

/** By username. */
export const PASSWORDS: Readonly<Record<string, string>> = {
  jane: 'password of jane',
  jürgen: 'password of jürgen',
  'o(brien)*': 'password of brien',
  'back\\slash': 'password of backslash',
}

export interface Slapd extends AsyncDisposable {
  /** `ldap://…`, for StartTLS. */
  readonly plainUrl: string
  /** `ldaps://…`. */
  readonly tlsUrl: string
}

const STARTUP_TRIES = 100
const NOLOGIN = 'nobody'

export async function startSlapd(folder: string, files: CertificateFiles): Promise<Slapd> {
  const database = join(folder, 'database')
  mkdirSync(database, { recursive: true })
  const config = join(folder, 'slapd.conf')
  const [ldif, run] = [join(folder, 'entries.ldif'), join(folder, 'run')]
  writeFileSync(config, configText({ database, run, files }), { mode: 0o600 })
  writeFileSync(ldif, ldifText())
  const loaded = spawnSync('slapadd', ['-f', config, '-l', ldif], { encoding: 'utf8' })
  if (loaded.status !== 0) throw new Error(`slapadd failed: ${loaded.stderr}`)
  const [plain, tls] = [await freePort(), await freePort()]
  const urls = { plainUrl: `ldap://127.0.0.1:${plain}`, tlsUrl: `ldaps://127.0.0.1:${tls}` }
  const child = spawn('slapd', ['-d', '0', '-f', config, '-h', `${urls.plainUrl} ${urls.tlsUrl}`], { stdio: 'ignore' })
  for (const port of [plain, tls]) await listening(port)
  return { ...urls, [Symbol.asyncDispose]: () => end(child, 'SIGTERM') }
}

async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < STARTUP_TRIES; tries++) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true))
      socket.on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })
    if (isOpen) return
    await sleep(realClock, 100)
  }
  throw new Error('slapd does not listen')
}

interface ConfigPlan {
  readonly database: string
  readonly run: string
  readonly files: CertificateFiles
}

function configText({ database, run, files }: ConfigPlan): string {
  return `
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile ${run}.pid
argsfile ${run}.args
TLSCertificateFile ${files.certificateFile}
TLSCertificateKeyFile ${files.keyFile}
TLSCACertificateFile ${files.authorityFile}
security simple_bind=128
sizelimit 500
database mdb
suffix "${BASE}"
directory ${database}
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="${SERVICE.dn}" read by * none
`
}

function ldifText(): string {
  const user = (uid: string): string =>
    entry(`uid=${escapeDn(uid)},ou=people,${BASE}`, {
      objectClass: ['inetOrgPerson'],
      uid: [uid],
      cn: [`${uid} the user`],
      sn: ['User'],
      userPassword: [PASSWORDS[uid] ?? ''],
    })
  const group = (cn: string, ...members: readonly string[]): string =>
    entry(`cn=${cn},ou=groups,${BASE}`, { objectClass: ['groupOfNames'], cn: [cn], member: members })
  const groupDn = (cn: string): string => `cn=${cn},ou=groups,${BASE}`
  const userDn = (uid: string): string => `uid=${escapeDn(uid)},ou=people,${BASE}`
  return [
    entry(BASE, { objectClass: ['dcObject', 'organization'], o: ['Example'], dc: ['example'] }),
    entry(`ou=people,${BASE}`, { objectClass: ['organizationalUnit'], ou: ['people'] }),
    entry(`ou=groups,${BASE}`, { objectClass: ['organizationalUnit'], ou: ['groups'] }),
    entry(SERVICE.dn, {
      objectClass: ['organizationalRole', 'simpleSecurityObject'],
      cn: ['hyperkube'],
      userPassword: [SERVICE.password],
    }),
    ...Object.keys(PASSWORDS).map((uid) => user(uid)),
    group('devs', userDn('jane'), userDn('o(brien)*')),
    group('engineers', groupDn('devs')),
    group('everybody', groupDn('engineers'), groupDn('circle')),
    group('circle', groupDn('everybody')),
    group('others', userDn('jürgen')),
    group(NOLOGIN, `uid=${NOLOGIN},ou=people,${BASE}`),
  ].join('\n')
}

/** Values in base64, so that any text is allowed. */
function entry(dn: string, attributes: Readonly<Record<string, readonly string[]>>): string {
  const line = (name: string, value: string): string => `${name}:: ${Buffer.from(value).toString('base64')}`
  const lines = Object.entries(attributes).flatMap(([name, values]) => values.map((value) => line(name, value)))
  return [line('dn', dn), ...lines, ''].join('\n')
}

function escapeDn(value: string): string {
  return value.replaceAll(/[\\,+"<>;=#]/g, (character) => `\\${character}`)
}
