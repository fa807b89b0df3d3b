/**
 * Compares kubectl's output for every built-in kind with upstream's kube-apiserver and with ours: `node
 * test/upstream/kubectl-servers.ts [--kubectl FILE] [--kind NAME …]`. Order, indentation and columns must be equal;
 * varying values (uids, times, ages, versions, random names, addresses, descriptions) are masked with the same width.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { apiVersionOf } from '#meta/kind.ts'

import type { Given, Json, KindCases } from '../refusals/case.ts'
import { everyCase } from '../refusals/index.ts'
import { differences } from './line-differences.ts'
import { type Server, startOurs, writeKubeconfig } from './ours.ts'
import { upstreamPrograms } from './programs.ts'
import { startReference } from './reference.ts'

const { values: options } = parseArgs({
  options: { kubectl: { type: 'string' }, kind: { type: 'string', multiple: true } },
})

/** Kinds that are only ever created, never kept: nothing to get. */
const NEVER_KEPT = new Set(['Binding', 'TokenReview', 'SelfSubjectReview', 'SubjectAccessReview'])
const isKept = ({ kind }: KindCases): boolean => kind.verbs.includes('get') && !NEVER_KEPT.has(kind.kind)

interface Step {
  readonly args: readonly string[]
  /** For the person who reads the difference. */
  readonly name?: string
  readonly env?: Readonly<Record<string, string>>
  /** The outcome is not compared: it only prepares the next one. */
  readonly prepares?: boolean
}

/** About the server as a whole. */
function generalSteps(isOld: boolean): Step[] {
  const steps = [
    'api-versions',
    'api-resources --no-headers',
    'api-resources -o wide --no-headers',
    'get --raw /api',
    'get namespaces',
    'get all',
    'get clusterroles,clusterrolebindings -o name',
    'get roles,rolebindings -A -o wide',
    'get priorityclasses,flowschemas,prioritylevelconfigurations,apiservices',
    'get nosuchthings',
    'get pods nobody',
    'auth can-i create pods',
    'auth can-i --list --as=system:anonymous',
    'auth can-i list secrets --as=jane -n default',
    'get pods --as=jane',
    'get clusterrole view -o yaml',
    'get --raw /readyz?verbose=false',
    'create namespace again',
    'create namespace again',
    'delete namespace kube-system',
  ]
  const newer = ['auth whoami', 'create token default', 'events', 'explain pod.spec.containers --recursive']
  return [...steps, ...(isOld ? [] : newer)].map((line) => ({ args: line.split(' ') }))
}

/** The commands for one object of a kind, from its creation to its deletion. */
function stepsFor({ kind, valid }: KindCases, folder: string, isOld: boolean): Step[] {
  const name = (valid.metadata as { name: string }).name
  const namespace = kind.namespaced ? ['-n', (valid.metadata as { namespace?: string }).namespace ?? 'default'] : []
  const type = kind.group === '' ? kind.plural : `${kind.plural}.${kind.version}.${kind.group}`
  const it = [type, name, ...namespace]
  const file = (suffix: string): string => join(folder, `${kind.kind}-${kind.version}${suffix}.json`)
  const edit = { KUBE_EDITOR: `sed -i s/team:.red/team:.green/` }
  const steps: Step[] = [
    { args: ['create', '-f', file(''), '--dry-run=server', '-o', 'yaml'] },
    { args: ['create', '-f', file('')] },
    { args: ['create', '-f', file('')], name: 'create again' },
    { args: ['get', ...it] },
    { args: ['get', type, ...namespace, '-o', 'wide', '--field-selector', `metadata.name=${name}`] },
    { args: ['get', ...it, '-o', 'yaml', ...(isOld ? [] : ['--show-managed-fields'])] },
    { args: ['get', ...it, '-o', 'jsonpath={.kind} {.apiVersion} {.metadata.name} {.spec}'] },
    { args: ['get', ...it, '-o', 'custom-columns=N:.metadata.name,S:.spec,T:.status'] },
    { args: ['get', ...it, '--show-labels', '-o', 'name'] },
    { args: ['label', ...it, 'team=red'] },
    { args: ['annotate', ...it, 'note=written'] },
    { args: ['patch', ...it, '--type=merge', '-p', '{"metadata":{"labels":{"merged":"yes"}}}'] },
    { args: ['patch', ...it, '--type=json', '-p', '[{"op":"add","path":"/metadata/labels/json","value":"yes"}]'] },
    { args: ['patch', ...it, '-p', '{"metadata":{"labels":{"strategic":"yes"}}}'] },
    { args: ['patch', ...it, '-p', '{"nonsense":1}', '--type=merge'] },
    { args: ['edit', ...it], env: edit },
    { args: ['diff', '-f', file('-changed')] },
    { args: ['apply', '-f', file('-changed')] },
    { args: ['apply', '-f', file('-changed'), '--server-side'], name: 'apply that conflicts' },
    { args: ['apply', '-f', file('-changed'), '--server-side', '--force-conflicts'] },
    { args: ['apply', '-f', file('-changed'), '--dry-run=server'] },
    { args: ['wait', ...it, '--for=condition=Nothing', '--timeout=1s'] },
    { args: ['describe', ...it] },
    { args: ['get', type, ...namespace, '-w', '--request-timeout=1s', '--field-selector', `metadata.name=${name}`] },
    { args: ['explain', kind.plural, `--api-version=${apiVersionOf(kind)}`, '--recursive'] },
    ...(kind.subresources.some((part) => part.name === 'scale') ? [{ args: ['scale', ...it, '--replicas=3'] }] : []),
    { args: ['get', ...it, '-o', 'yaml', ...(isOld ? [] : ['--show-managed-fields'])], name: 'the result' },
    { args: ['delete', ...it, '--wait=false'] },
    { args: ['delete', ...it, '--force', '--grace-period=0', '--wait=false'], prepares: true },
  ]
  return steps
}

interface Side {
  readonly kubeconfig: string
  readonly home: string
}

interface Outcome {
  readonly code: number
  readonly text: string
}

function run(kubectl: string, { args, env = {} }: Step, { kubeconfig, home }: Side): Promise<Outcome> {
  const environment = { PATH: process.env.PATH ?? '', HOME: home, KUBECONFIG: kubeconfig, ...env }
  return new Promise((resolve) => {
    execFile(kubectl, args, { env: environment, timeout: 30_000, maxBuffer: 2 ** 26 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), text: `${out}${err}` })
    })
  })
}

/** Values that may differ between two servers. */
const MASKS: readonly (readonly [RegExp, string])[] = [
  [/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, 'UID'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, 'TIME'],
  [/\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, 'TIME'],
  [/resourceVersion"?: ?"\d+"/g, 'resourceVersion: "N"'],
  [/Resource Version: +\d+/g, 'Resource Version: N'],
  [/X509SHA256=[\da-f]{64}/g, 'X509SHA256=H'],
  [/(serverAddress":")[\d.]+:\d+/g, '$1SERVER'],
  [/https?:\/\/127\.0\.0\.1:\d+/g, 'SERVER'],
  [/127\.0\.0\.1:\d+/g, 'SERVER'],
  [/\b10\.0\.0\.\d+\b/g, 'SERVICE-IP'],
  [/\b3[0-2]\d{3}\b/g, 'NODE-PORT'],
  [/\S*kubectl-(edit-\w+|\d+)\S*|\S*\/(LIVE|MERGED)-\d+\S*/g, 'FILE'],
  [/FILE\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}/g, 'FILE TIME'],
  [/kube-api-access-\w{5}/g, 'kube-api-access-XXXXX'],
  [/(?<=^|[ \t(])(\d+m)?\d+s(?=[ \t)]|$)/gm, 'AGE'],
  [/<invalid>|<unknown>/g, 'AGE'],
  // Descriptions are in our own words.
  [/DESCRIPTION:.*?FIELDS:/gs, 'FIELDS:'],
  [/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, 'TOKEN'],
  [/storageVersionHash":"[^"]*"/g, 'storageVersionHash":"H"'],
]

function masked(text: string, folder: string): string {
  const plain = text.replaceAll(folder, 'FOLDER')
  return MASKS.reduce((now, [pattern, word]) => mask(now, pattern, word), plain).trimEnd()
}

/** A value in a column is masked together with the room behind it. */
function mask(text: string, pattern: RegExp, word: string): string {
  const inColumn = new RegExp(`(?:${pattern.source})(?<room> {2,}(?=\\S))?`, pattern.flags)
  return text.replaceAll(inColumn, (...found) => {
    const { room = '' } = found.at(-1) as { room?: string }
    const [whole] = found
    const by = word.replaceAll(/\$(\d)/g, (_all, number: string) => (found[Number(number)] as string | undefined) ?? '')
    return room === '' ? by : by.padEnd(whole.length)
  })
}

function complete({ kind, object }: Given): Json {
  return { kind: kind.kind, apiVersion: apiVersionOf(kind), ...object }
}

async function writeObjects(folder: string, { kind, valid }: KindCases): Promise<void> {
  const whole = complete({ kind, object: valid })
  const metadata = whole.metadata as { labels?: Json }
  const changed = { ...whole, metadata: { ...metadata, labels: { ...metadata.labels, team: 'blue' } } }
  const file = (suffix: string): string => join(folder, `${kind.kind}-${kind.version}${suffix}.json`)
  await writeFile(file(''), JSON.stringify(whole))
  await writeFile(file('-changed'), JSON.stringify(changed))
}

async function main(): Promise<number> {
  const { kubectl } =
    options.kubectl === undefined ? await upstreamPrograms(['kubectl'], say) : { kubectl: options.kubectl }
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-kubectl-'))
  const started: Server[] = []
  const side = async (name: string, start: (folder: string) => Promise<Server>): Promise<Side> => {
    const own = join(folder, name)
    const server = await start(own)
    started.push(server)
    return { kubeconfig: await writeKubeconfig(join(own, 'kubeconfig'), server), home: join(own, 'home') }
  }
  try {
    return await compare(kubectl, folder, [await side('theirs', startReference), await side('ours', startOurs)])
  } finally {
    await Promise.all(started.map((server) => server.stop()))
    await rm(folder, { recursive: true, force: true })
  }
}

async function compare(kubectl: string, folder: string, [theirs, ours]: readonly [Side, Side]): Promise<number> {
  const { text: version } = await run(kubectl, { args: ['version', '--client'] }, theirs)
  const isOld = /1\.20/.test(version)
  const account = { args: ['create', 'serviceaccount', 'default'] }
  await Promise.all([run(kubectl, account, theirs), run(kubectl, account, ours)])
  let [compared, differing] = [0, 0]
  const walk = async (about: string, steps: readonly Step[]): Promise<void> => {
    for (const step of steps) {
      const outcomes = await Promise.all([run(kubectl, step, theirs), run(kubectl, step, ours)])
      if (step.prepares === true) continue
      compared++
      const [left, right] = outcomes.map(({ text }) => masked(text, folder)) as [string, string]
      const lines = differences(left, right)
      if (outcomes[0]?.code !== outcomes[1]?.code) lines.unshift(`    exit ${outcomes[0]?.code} / ${outcomes[1]?.code}`)
      if (lines.length === 0) continue
      differing++
      process.stdout.write(
        `${about}: kubectl ${step.args.join(' ').replaceAll(folder, '')}${step.name ? ` (${step.name})` : ''}\n`,
      )
      process.stdout.write(`${lines.slice(0, 40).join('\n')}\n`)
    }
  }
  if (options.kind === undefined) await walk('general', generalSteps(isOld))
  for (const cases of everyCase.filter(isKept)) {
    if (options.kind !== undefined && !options.kind.includes(cases.kind.kind)) continue
    await writeObjects(folder, cases)
    for (const given of cases.given ?? []) {
      const file = join(folder, 'given.json')
      await writeFile(file, JSON.stringify(complete(given)))
      await Promise.all([theirs, ours].map((side) => run(kubectl, { args: ['create', '-f', file] }, side)))
    }
    await walk(`${apiVersionOf(cases.kind)} ${cases.kind.kind}`, stepsFor(cases, folder, isOld))
  }
  process.stdout.write(`\n${compared} commands, ${differing} print different output\n`)
  return differing === 0 ? 0 : 1
}

function say(line: string): void {
  process.stderr.write(`${line}\n`)
}

process.exitCode = await main()
