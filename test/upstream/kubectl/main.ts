/**
 * Two kubectls on one server: upstream's and ours run the same command lines, each in a namespace of its own, and what they
 * print and how they end must be the same but for times and names that the server makes up.
 *
 *     node test/upstream/kubectl/main.ts --kubectl <upstream's> --kubeconfig <of a cluster> [--only get] [--show]
 *
 * The cluster: `hyperkube up --runtime simulated`. Lines stand in files by command; `$NS` is the namespace, `$M` the folder
 * `manifests`. A line that begins with `!` prepares the next ones and is not compared.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    kubectl: { type: 'string' },
    kubeconfig: { type: 'string' },
    only: { type: 'string', multiple: true },
    show: { type: 'boolean' },
  },
})

const FOLDER = import.meta.dirname
const OURS = join(FOLDER, '../../../bin/hyperkube')

interface Side {
  readonly program: string
  readonly prefix: readonly string[]
  readonly namespace: string
  readonly home: string
}

interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Words of a line, quotes as a shell has them. */
function wordsOf(line: string): string[] {
  const words = line.match(/(?:[^\s'"]+|'[^']*'|"[^"]*")+/g) ?? []
  return words.map((word) => word.replaceAll(/'([^']*)'|"([^"]*)"/g, '$1$2'))
}

function run(side: Side, line: string): Promise<Outcome> {
  const { program, prefix, namespace, home } = side
  const text = line.replaceAll('$NS', namespace).replaceAll('$M', join(FOLDER, 'manifests'))
  const args = [...prefix, ...wordsOf(text)]
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, KUBECONFIG: values.kubeconfig ?? '', EDITOR: 'true' }
  return new Promise((done) => {
    const child = execFile(program, args, { env, timeout: 20_000, maxBuffer: 2 ** 26 }, (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 255
      done({ code, out, err })
    })
    child.stdin?.end()
  })
}

/** What may differ without anybody seeing a difference. */
const MASKS: readonly (readonly [RegExp, string])[] = [
  [/\bpair-[ab]\b/g, 'NAMESPACE'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, 'TIME'],
  [/\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, 'TIME'],
  [/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, 'UID'],
  [/resourceVersion"?: ?"\d*"/g, 'RV'],
  [/^[WEI]\d{4} [\d:.]+ +\d+ [a-z_]+\.go:\d+\]/gm, 'LOG'],
  [/(?<=^|[ \t(])(\d+[dhms])+(?=[ \t)]|$)/gm, 'AGE'],
  [/\b10\.\d+\.\d+\.\d+\b/g, 'IP'],
  [/\b3[0-2]\d{3}\b/g, 'PORT'],
  [/-[a-f0-9]{8,10}-[a-z0-9]{5}\b|(?<=[a-z0-9])-[bcdfghjklmnpqrstvwxz2456789]{5}\b/g, '-GENERATED'],
  [/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, 'TOKEN'],
  [/v1\.36\.4\+hyperkube1/g, 'v1.36.4'],
  [/<invalid>|<unknown>/g, 'AGE'],
  [/ +/g, ' '],
  [/-{3,}/g, '---'],
]

function masked({ code, out, err }: Outcome): string {
  let text = `${out}\n--- stderr\n${err}\n--- exit ${code}`
  for (const [pattern, by] of MASKS) text = text.replaceAll(pattern, by)
  return text
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

async function linesOf(file: string): Promise<string[]> {
  const text = await readFile(join(FOLDER, file), 'utf8')
  return text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'))
}

async function main(): Promise<number> {
  const home = await mkdtemp(join(tmpdir(), 'hyperkube-kubectl-pair-'))
  const upstream = { program: values.kubectl ?? 'kubectl', prefix: [], namespace: 'pair-a', home }
  const ours = { program: OURS, prefix: ['kubectl'], namespace: 'pair-b', home }
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith('.txt')).sort()
  const chosen = files.filter((file) => values.only === undefined || values.only.includes(file.replace('.txt', '')))
  let count = 0
  let different = 0
  for (const file of chosen) {
    for (const side of [upstream, ours]) await run({ ...upstream, namespace: side.namespace }, 'create namespace $NS')
    let wrong = 0
    const lines = await linesOf(file)
    for (const line of lines) {
      const isCompared = !line.startsWith('!')
      const text = isCompared ? line : line.slice(1)
      const [theirs, own] = await Promise.all([
        run(upstream, text),
        run(isCompared ? ours : { ...upstream, namespace: 'pair-b' }, text),
      ])
      if (!isCompared) continue
      count++
      const [expected, actual] = [masked(theirs), masked(own)]
      if (expected === actual.replaceAll('hyperkube kubectl', 'kubectl')) continue
      wrong++
      if (values.show === true) say(`\n$ kubectl ${line}\n<<< upstream\n${expected}\n>>> ours\n${actual}`)
      else say(`differs: kubectl ${line}`)
    }
    different += wrong
    say(`${file.replace('.txt', '')}: ${lines.length} lines, ${wrong} differ`)
    for (const side of [upstream, ours])
      await run({ ...upstream, namespace: side.namespace }, 'delete namespace $NS --wait')
  }
  await rm(home, { recursive: true, force: true })
  say(`${count} command lines compared, ${different} differ`)
  return different === 0 ? 0 : 1
}

process.exitCode = await main()
