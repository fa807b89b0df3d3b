/**
 * The fuzzer: many random requests by several concurrent clients. None may crash the server, stay unanswered, or get a
 * 500 that upstream does not also return. Afterwards everything stored can be read in every format, before and after a
 * restart. `node test/reliability/main.ts fuzz --requests 100000 --seed 1`
 */
import { performance } from 'node:perf_hooks'

import { groups } from '#apis/kinds.ts'

import { allowUser, ApiProgram, credentials } from '../program.ts'
import { BrokenError, openConnection, type RawAnswer, RawClient, type RawConnection } from '../raw-http.ts'
import { EXPECTED_5XX, isKnownError } from './known-errors.ts'
import { type FuzzRequest, requestFor } from './requests.ts'

export interface FuzzOptions {
  readonly seed: number
  /** The number of the first one. */
  readonly first: number
  readonly requests: number
  readonly clients: number
  readonly datastore: string
  /** Called from time to time. */
  readonly progress?: (done: number) => void
}

export interface FuzzReport {
  readonly sent: number
  readonly statuses: ReadonlyMap<number, number>
  /** Defects, each with the request as a line to repeat it. */
  readonly problems: readonly string[]
  readonly knownErrors: number
  readonly tookMs: number
  readonly slowestMs: number
  readonly heldMs: number
  readonly residentMb: number
}

/** The maximum duration of a request that does not wait, on a busy machine. */
const SLOW_MS = 15_000
/** How long an answer without end is read. */
const ENDLESS_MS = 300
/** The limit of reported problems. */
const MAX_PROBLEMS = 50
const FLAGS = [
  '--runtime-config=api/all=true',
  '--max-requests-inflight=10000',
  '--max-mutating-requests-inflight=10000',
]

export async function runFuzz(options: FuzzOptions): Promise<FuzzReport> {
  const program = await ApiProgram.create({ datastore: options.datastore, flags: FLAGS })
  try {
    await program.start()
    await allowUser(program.target)
    await createNamespaces(program)
    program.samples = []
    const run = new FuzzRun(program, options)
    await run.all()
    await run.readEverything('after the run')
    if (program.storeFile !== undefined && program.isRunning) {
      await program.kill()
      await program.start()
      await run.readEverything('after a restart')
    }
    return run.report()
  } finally {
    await program.close()
  }
}

async function createNamespaces({ target }: ApiProgram): Promise<void> {
  const client = new RawClient(target, credentials('root'))
  for (const name of ['fuzz', 'other']) {
    await client.send({ method: 'POST', path: '/api/v1/namespaces', body: JSON.stringify({ metadata: { name } }) })
  }
  client.close()
}

class FuzzRun {
  readonly #program: ApiProgram
  readonly #options: FuzzOptions
  readonly #statuses = new Map<number, number>()
  readonly #problems: string[] = []
  readonly #begun = performance.now()
  #next: number
  #sent = 0
  #knownErrors = 0
  #slowestMs = 0

  constructor(program: ApiProgram, options: FuzzOptions) {
    this.#program = program
    this.#options = options
    this.#next = options.first
  }

  async all(): Promise<void> {
    await Promise.all(Array.from({ length: this.#options.clients }, () => this.#client()))
  }

  report(): FuzzReport {
    const { samples } = this.#program
    return {
      sent: this.#sent,
      statuses: this.#statuses,
      problems: this.#problems,
      knownErrors: this.#knownErrors,
      tookMs: performance.now() - this.#begun,
      slowestMs: this.#slowestMs,
      heldMs: Math.max(0, ...samples.map(({ heldMs }) => heldMs)),
      residentMb: Math.max(0, ...samples.map(({ residentBytes }) => residentBytes)) / 2 ** 20,
    }
  }

  /** Lists of every kind, in every form. */
  async readEverything(when: string): Promise<void> {
    const client = new RawClient(this.#program.target, credentials('root'))
    const kinds = groups.flatMap(({ versions }) => versions.flatMap((version) => version.kinds))
    for (const { group, version, plural, verbs } of kinds) {
      if (!verbs.includes('list')) continue
      const path = `${group === '' ? '/api' : `/apis/${group}`}/${version}/${plural}`
      for (const accept of FORMS) {
        const { status, body } = await client.send({ path, headers: { accept } })
        const isFine = status === 200 || status === 404 || (status === 406 && accept !== 'application/json')
        if (!isFine) this.#complain(`${when}: GET ${path} as ${accept}: ${status} ${body.toString().slice(0, 300)}`)
      }
    }
    client.close()
    this.#readOutput(when)
  }

  async #client(): Promise<void> {
    let connection: RawConnection | undefined
    const { first, requests, seed } = this.#options
    while (this.#next < first + requests && this.#problems.length < MAX_PROBLEMS) {
      const number = this.#next++
      const request = requestFor(seed, number)
      try {
        if (connection?.isOpen !== true) connection = await openConnection(this.#program.target)
        await this.#one(connection, request, number)
      } catch (error) {
        if (!(await this.#judgeBreak(error, request, number))) return
        connection?.close()
      }
      this.#sent++
      if (this.#sent % 1000 === 0) this.#options.progress?.(this.#sent)
    }
    connection?.close()
  }

  async #one(connection: RawConnection, request: FuzzRequest, number: number): Promise<void> {
    const begun = performance.now()
    if (request.isEndless) {
      const timer = setTimeout(() => connection.close(), ENDLESS_MS)
      await connection.follow(request, () => undefined).catch(() => undefined)
      clearTimeout(timer)
      connection.close()
      return
    }
    const answer = await connection.send(request)
    this.#statuses.set(answer.status, (this.#statuses.get(answer.status) ?? 0) + 1)
    const tookMs = performance.now() - begun
    // Those wait for a version that may never come, or for the deadline the client named.
    if (answer.status !== 504) this.#slowestMs = Math.max(this.#slowestMs, tookMs)
    const complaint =
      this.#judge(request, answer) ??
      (tookMs > SLOW_MS && answer.status !== 504 ? `took ${tookMs.toFixed(0)} ms` : undefined)
    if (complaint !== undefined) this.#complain(`${complaint}\n    #${number} ${this.#line(request)}`)
    this.#readOutput(`#${number}`)
  }

  #judge(request: FuzzRequest, { status, body, headers }: RawAnswer): string | undefined {
    if (status < 500) return undefined
    const text = body.toString()
    const message = messageIn(text, headers.get('content-type') ?? '')
    if (status === 500 && isKnownError(request.method, message)) {
      this.#knownErrors++
      return undefined
    }
    return EXPECTED_5XX.has(status) ? undefined : `${status} ${message.slice(0, 400)}`
  }

  /** False when there is no server any more. */
  async #judgeBreak(error: unknown, request: FuzzRequest, number: number): Promise<boolean> {
    if (!this.#program.isRunning) {
      this.#complain(`the server ended: ${this.#program.output.slice(-3000)}\n    #${number} ${this.#line(request)}`)
      return false
    }
    if (!(error instanceof BrokenError)) throw error
    if (!request.isMalformed) this.#complain(`${error.message}\n    #${number} ${this.#line(request)}`)
    return true
  }

  /** Reports stacks and Node's warnings in the server's output. */
  #readOutput(where: string): void {
    const complaint = this.#program.takeComplaint()
    if (complaint !== undefined) this.#complain(`near ${where} the server said: ${complaint}`)
  }

  #complain(problem: string): void {
    if (this.#problems.length < MAX_PROBLEMS) this.#problems.push(problem)
  }

  #line(request: FuzzRequest): string {
    return asCurl(request, this.#program.target.port)
  }
}

const FORMS = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
  'application/json;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
]

function messageIn(text: string, contentType: string): string {
  if (!contentType.startsWith('application/json')) return /message: (.*)/.exec(text)?.[1] ?? text
  try {
    return (JSON.parse(text) as { message?: string }).message ?? text
  } catch {
    return text
  }
}

/** The request as a line for a shell. */
export function asCurl({ method, path, headers, body }: FuzzRequest, port: number): string {
  const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
  const given = Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`)
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const data =
    bytes === undefined
      ? ''
      : isPlain(bytes)
        ? ` --data-binary ${quote(bytes.toString())}`
        : ` --data-binary @<(base64 -d <<<${bytes.toString('base64')})`
  return `curl -k --path-as-is -X ${method} ${given.join(' ')} ${quote(`https://127.0.0.1:${port}${path}`)}${data}`
}

function isPlain(bytes: Buffer): boolean {
  return /^[\x20-\x7e\n]*$/.test(bytes.toString('latin1'))
}
