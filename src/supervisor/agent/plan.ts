/** What a server tells a node to be: certificates, files, and the settings of the supervisor. Read strictly where it counts. */
import type { Layout } from '../layout.ts'
import { readSettings } from '../settings-file.ts'
import type { NodeSettings } from '../settings.ts'

export interface NodePlan {
  /** By plain name: they go where certificates are. */
  readonly certificates: Readonly<Record<string, string>>
  readonly files: readonly PlannedFile[]
  /** Certificates and files are all there is to it. */
  readonly isFilesOnly: boolean
  /** Undefined: nothing is to run here. */
  readonly settings: NodeSettings | undefined
  /** After how long the next is asked for. */
  readonly intervalMs: number
}

export interface PlannedFile {
  readonly path: string
  readonly text: string
}

const INTERVAL_MS = 120_000
const PLAIN_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/
const ABSOLUTE = /^(?:\/|[A-Za-z]:[\\/])/

interface Given {
  readonly certs?: unknown
  readonly files?: unknown
  readonly writeCertsOnly?: unknown
  readonly node?: unknown
  readonly agentCheckInterval?: unknown
}

/** Throws an Error that says what cannot be taken. A plan of a newer server may say more than is known here. */
export function readPlan(document: unknown): NodePlan {
  if (typeof document !== 'object' || document === null || Array.isArray(document)) throw new Error('it is no document')
  const { certs = {}, files = [], writeCertsOnly = false, node, agentCheckInterval } = document as Given
  const seconds = typeof agentCheckInterval === 'number' && agentCheckInterval > 0 ? agentCheckInterval : undefined
  return {
    certificates: readCertificates(certs),
    files: readFiles(files),
    isFilesOnly: writeCertsOnly === true,
    settings: node === undefined || node === null ? undefined : readSettings(node),
    intervalMs: seconds === undefined ? INTERVAL_MS : seconds * 1000,
  }
}

function readCertificates(given: unknown): Record<string, string> {
  if (typeof given !== 'object' || given === null) throw new Error('"certs" holds no certificates by name')
  for (const [name, text] of Object.entries(given)) {
    if (!PLAIN_NAME.test(name)) throw new Error(`"${name}" is no name of a certificate`)
    if (typeof text !== 'string') throw new Error(`the certificate "${name}" is no text`)
  }
  return given as Record<string, string>
}

function readFiles(given: unknown): PlannedFile[] {
  if (!Array.isArray(given)) throw new Error('"files" is no list')
  return given.map((item: unknown) => {
    const { name, contents } = (item ?? {}) as { readonly name?: unknown; readonly contents?: unknown }
    if (typeof name !== 'string' || !ABSOLUTE.test(name) || name.split(/[\\/]/).includes('..'))
      throw new Error(`${JSON.stringify(name)} is no place for a file`)
    if (typeof contents !== 'string') throw new Error(`the file "${name}" has no contents`)
    return { path: name, text: Buffer.from(contents, 'base64').toString('utf8') }
  })
}

/** All that is to be written, and where. Certificates come first: files may name them. */
export function planFiles({ certificates, files }: NodePlan, layout: Layout): PlannedFile[] {
  const separator = layout.certificates.includes('\\') ? '\\' : '/'
  return [
    ...Object.entries(certificates).map(([name, text]) => ({
      path: `${layout.certificates}${separator}${name}`,
      text,
    })),
    ...files.map(({ path, text }) => ({ path: layout.place(path), text })),
  ]
}
