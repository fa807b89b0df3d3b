/** A small LDAP server for tests: simple bind, StartTLS, and search with and, or, equality and presence. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

import { element, integer, listOf, readElements, text } from './ber.ts'

export interface DirectoryEntry {
  readonly dn: string
  /** Without one, log-in as the entry fails. */
  readonly password?: string
  readonly attributes: Readonly<Record<string, readonly string[]>>
}

export interface FakeLdapPlan {
  readonly certificate: string
  readonly key: string
  readonly entries: readonly DirectoryEntry[]
}

export type Misbehaviour =
  | 'none'
  | 'refuses-tls'
  | 'adds-bytes-before-tls'
  | 'closes-after-tls'
  | 'closes-after-bind'
  | 'is-silent'
  | 'refers'

export interface FakeLdap extends AsyncDisposable {
  readonly port: number
  misbehaviour: Misbehaviour
  /** Names that were bound without and with TLS. */
  readonly binds: { readonly dn: string; readonly password: string; readonly isEncrypted: boolean }[]
  /** Connections so far. */
  connections: number
  /** Connections that are open now. */
  readonly open: ReadonlySet<Socket>
}

const SUCCESS = 0
const INVALID_CREDENTIALS = 49
const UNAVAILABLE = 52

export async function startFakeLdap(plan: FakeLdapPlan): Promise<FakeLdap> {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    fake.connections++
    socket.on('close', () => open.delete(socket))
    socket.on('error', () => undefined)
    serve(socket, { fake, plan, isEncrypted: false })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const fake: FakeLdap = {
    port: (server.address() as AddressInfo).port,
    misbehaviour: 'none',
    binds: [],
    connections: 0,
    open,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  return fake
}

interface Session {
  readonly fake: FakeLdap
  readonly plan: FakeLdapPlan
  readonly isEncrypted: boolean
}

function serve(socket: Socket, session: Session): void {
  let bytes = Buffer.alloc(0)
  const onData = (piece: Buffer): void => {
    bytes = Buffer.concat([bytes, piece])
    for (let length = messageLength(bytes); length !== undefined; length = messageLength(bytes)) {
      const message = bytes.subarray(0, length)
      bytes = bytes.subarray(length)
      const answer = answerTo(message, session)
      if (answer === 'tls') {
        socket.removeListener('data', onData)
        return upgrade(socket, session)
      }
      for (const one of answer) socket.write(one)
      if (session.fake.misbehaviour === 'closes-after-bind' && session.fake.binds.length > 0) socket.end()
    }
  }
  socket.on('data', onData)
}

function messageLength(bytes: Buffer): number | undefined {
  if (bytes.length < 2) return undefined
  const first = bytes[1] ?? 0
  const more = first < 0x80 ? 0 : first & 0x7f
  if (bytes.length < 2 + more) return undefined
  const length = more === 0 ? first : bytes.readUIntBE(2, more)
  return bytes.length < 2 + more + length ? undefined : 2 + more + length
}

function upgrade(socket: Socket, session: Session): void {
  const { fake, plan } = session
  if (fake.misbehaviour === 'refuses-tls') return void socket.write(result(1, 0x78, UNAVAILABLE))
  const accepted = result(1, 0x78, SUCCESS)
  // What follows would be the answer to the next request.
  const added = fake.misbehaviour === 'adds-bytes-before-tls' ? [result(2, 0x61, SUCCESS)] : []
  socket.write(Buffer.concat([accepted, ...added]))
  const secure = new TLSSocket(socket, { isServer: true, cert: plan.certificate, key: plan.key })
  secure.on('error', () => undefined)
  if (fake.misbehaviour === 'closes-after-tls') return void secure.once('secure', () => socket.destroy())
  serve(secure, { ...session, isEncrypted: true })
}

function answerTo(message: Buffer, session: Session): readonly Buffer[] | 'tls' {
  const { fake } = session
  if (fake.misbehaviour === 'is-silent') return []
  const [id, operation] = readElements(readElements(message)[0]?.content ?? Buffer.alloc(0))
  const messageId = id?.content.readUIntBE(0, id.content.length) ?? 0
  if (operation?.tag === 0x77) return 'tls'
  if (operation?.tag === 0x60) return [result(messageId, 0x61, bind(operation.content, session))]
  if (operation?.tag === 0x63) return search(messageId, operation.content, session)
  return []
}

function bind(content: Buffer, { fake, plan, isEncrypted }: Session): number {
  const [, name, secret] = readElements(content)
  const [dn, password] = [String(name?.content), String(secret?.content)]
  fake.binds.push({ dn, password, isEncrypted })
  // As real servers do: a bind without a password is anonymous.
  if (password === '') return SUCCESS
  const found = plan.entries.find((entry) => entry.dn.toLowerCase() === dn.toLowerCase())
  return found?.password === password ? SUCCESS : INVALID_CREDENTIALS
}

function search(messageId: number, content: Buffer, { fake, plan }: Session): readonly Buffer[] {
  const [base, , , , , , filter, attributes] = readElements(content)
  const suffix = String(base?.content).toLowerCase()
  const wanted = readElements(attributes?.content ?? Buffer.alloc(0)).map((one) => String(one.content))
  const found = plan.entries.filter(
    (entry) => entry.dn.toLowerCase().endsWith(suffix) && filter !== undefined && matches(entry, filter),
  )
  const referral = element(0x30, integer(messageId), element(0x73, text('ldap://127.0.0.1:1/dc=evil')))
  return [
    ...found.map((entry) => searchEntry(messageId, entry, wanted)),
    ...(fake.misbehaviour === 'refers' ? [referral] : []),
    result(messageId, 0x65, SUCCESS),
  ]
}

type Element = ReturnType<typeof readElements>[number]

function matches(entry: DirectoryEntry, { tag, content }: Element): boolean {
  const parts = (): readonly Element[] => readElements(content)
  if (tag === 0xa0) return parts().every((part) => matches(entry, part))
  if (tag === 0xa1) return parts().some((part) => matches(entry, part))
  if (tag === 0x87) return valuesOf(entry, String(content)).length > 0
  if (tag !== 0xa3) return false
  const [name, value] = parts()
  const wanted = String(value?.content).toLowerCase()
  return valuesOf(entry, String(name?.content)).some((one) => one.toLowerCase() === wanted)
}

function valuesOf({ attributes }: DirectoryEntry, name: string): readonly string[] {
  return Object.entries(attributes).find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1] ?? []
}

function searchEntry(messageId: number, entry: DirectoryEntry, wanted: readonly string[]): Buffer {
  const attributes = wanted.flatMap((name) => {
    const values = valuesOf(entry, name)
    return values.length === 0 ? [] : [element(0x30, text(name), element(0x31, ...values.map((value) => text(value))))]
  })
  return element(0x30, integer(messageId), element(0x64, text(entry.dn), listOf(attributes)))
}

function result(messageId: number, tag: number, code: number): Buffer {
  return element(0x30, integer(messageId), element(tag, element(0x0a, Buffer.of(code)), text(''), text('')))
}
