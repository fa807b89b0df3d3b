/**
 * Compares admission policies on upstream's kube-apiserver and ours, with the same writes: `node
 * test/upstream/policies.ts [--only TEXT]`. Each case applies to writes with a separate label. So all policies can
 * exist together, and the script waits only once until upstream has loaded them. Exits with 1 on a difference.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'

import { ask, type Server, startOurs } from './ours.ts'
import { POLICY_CASES, type PolicyCase } from './policy-list.ts'
import { startReference } from './reference.ts'

const { values: options } = parseArgs({ options: { only: { type: 'string' } } })

/** Upstream looks at what has changed once a second. */
const NOTICE_MS = 4000

const GROUP = '/apis/admissionregistration.k8s.io/v1'
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'
const LIMITS = { metadata: { name: 'limits', labels: { limits: 'yes' } }, data: { max: '2' } }

async function answersOf(server: Server, cases: readonly PolicyCase[]): Promise<string[]> {
  await ask(server, { method: 'POST', path: CONFIG_MAPS, body: LIMITS })
  const written: string[] = []
  for (const [at, one] of cases.entries()) written.push(await install(server, one, `c${at}`))
  await sleep(realClock, NOTICE_MS)
  const answers: string[] = []
  for (const [at, one] of cases.entries()) answers.push(`${written[at]}${await write(server, one, `c${at}`)}`)
  return answers
}

/** The refusal of the policy or its binding; empty if both were created. */
async function install(server: Server, { kind, spec, binding }: PolicyCase, name: string): Promise<string> {
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }
  const selector = { objectSelector: { matchLabels: { case: name } } }
  const own = kind === 'mutating' ? { reinvocationPolicy: 'Never' } : {}
  const policy = {
    metadata: { name },
    spec: { ...own, ...spec, matchConstraints: { resourceRules: [rule], ...selector } },
  }
  const bound = kind === 'validating' ? { validationActions: ['Deny'] } : {}
  const bindingBody = { metadata: { name }, spec: { policyName: name, ...bound, ...binding } }
  const refused: string[] = []
  for (const [plural, body] of [
    [`${kind}admissionpolicies`, policy],
    [`${kind}admissionpolicybindings`, bindingBody],
  ] as const) {
    const answer = await ask(server, { method: 'POST', path: `${GROUP}/${plural}`, body })
    if (answer.status !== 201) refused.push(`${plural}: ${answer.status} ${JSON.stringify(answer.body)}\n`)
  }
  return refused.join('')
}

async function write(server: Server, { object = {} }: PolicyCase, name: string): Promise<string> {
  const { data = { a: '1', n: '5' }, labels = {} } = object
  const body = { metadata: { name, labels: { ...labels, case: name } }, data }
  const answer = await ask(server, { method: 'POST', path: CONFIG_MAPS, body })
  if (answer.status !== 201) return `${answer.status} ${JSON.stringify(answer.body)}`
  const { metadata, data: kept } = answer.body as { metadata: { labels?: object; annotations?: object }; data?: object }
  return `${answer.status} ${JSON.stringify({ ...metadata.labels, ...metadata.annotations, data: kept })}`
}

async function main(): Promise<number> {
  const cases = POLICY_CASES.filter(({ name }) => options.only === undefined || name.includes(options.only))
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-policies-'))
  await Promise.all(['ours', 'reference'].map((name) => mkdir(join(folder, name))))
  const [ours, reference] = [await startOurs(join(folder, 'ours')), await startReference(join(folder, 'reference'))]
  try {
    const [own, theirs] = await Promise.all([answersOf(ours, cases), answersOf(reference, cases)])
    const different = cases.filter((_, at) => own[at] !== theirs[at])
    for (const one of different) {
      const at = cases.indexOf(one)
      process.stdout.write(`✖ ${one.name}\n  upstream: ${theirs[at]}\n  ours:     ${own[at]}\n`)
    }
    process.stdout.write(`${cases.length - different.length} of ${cases.length} cases have upstream's answers\n`)
    return different.length === 0 ? 0 : 1
  } finally {
    await Promise.all([ours.stop(), reference.stop()])
    await rm(folder, { recursive: true, force: true })
  }
}

process.exitCode = await main()
