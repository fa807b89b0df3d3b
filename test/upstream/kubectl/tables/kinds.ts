/**
 * Scenes of the kubectl comparison for every built-in kind and a custom one: an object from creation to deletion,
 * printed in every format.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { Kind } from '#apis/kinds.ts'
import { apiVersionOf } from '#meta/kind.ts'

import type { Json, KindCases } from '../../../refusals/case.ts'
import { everyCase } from '../../../refusals/index.ts'
import type { Scene } from '../scene.ts'

/** Kinds that are only ever created, never kept: nothing to get. */
const kept = everyCase.filter(({ kind, valid }) => kind.verbs.includes('get') && valid.metadata !== undefined)

const typeOf = ({ plural, version, group }: Kind): string => (group === '' ? plural : `${plural}.${version}.${group}`)
const fileOf = ({ kind, version, group }: Kind): string => [kind, version, ...(group === '' ? [] : [group])].join('.')

/** Writes what the lines name: `$K/Pod.v1.json`, `$K/Pod.v1-changed.json` and `$K/Pod.v1-given.json`. */
export async function writeKinds(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const { kind, valid, given = [] } of kept) {
    const whole = complete(kind, valid)
    const metadata = whole['metadata'] as { labels?: Json }
    const changed = { ...whole, metadata: { ...metadata, labels: { ...metadata.labels, team: 'blue' } } }
    const before = given.map((each) => complete(each.kind, each.object))
    const write = (suffix: string, object: Json): Promise<void> =>
      writeFile(join(folder, `${fileOf(kind)}${suffix}.json`), JSON.stringify(object))
    await write('', whole)
    await write('-changed', changed)
    await write('-given', { apiVersion: 'v1', kind: 'List', items: before })
  }
}

function complete(kind: Kind, object: Json): Json {
  return { kind: kind.kind, apiVersion: apiVersionOf(kind), ...object }
}

/** As people look at one object, or at all of a kind. */
const FORMS = [
  '',
  '-o wide',
  '-o yaml',
  '-o json --show-managed-fields',
  '-o kyaml',
  '-o name',
  '-o jsonpath=\'{.kind} {.apiVersion} {.metadata.name} {.spec}{"\\n"}\'',
  "-o jsonpath-as-json='{.metadata.labels}'",
  '-o custom-columns=N:.metadata.name,S:.spec,T:.status',
  '-o go-template=\'{{.kind}}/{{.metadata.name}}: {{.spec}}{{"\\n"}}\'',
  '--show-labels --show-kind',
  '-L team,app --no-headers',
  '--server-print=false',
]

function linesFor({ kind, given = [] }: KindCases, name: string): string[] {
  const it = `${typeOf(kind)} ${name}`
  const file = `$K/${fileOf(kind)}`
  const hasScale = kind.subresources.some((part) => part.name === 'scale')
  const hasStatus = kind.subresources.some((part) => part.name === 'status')
  return [
    ...(given.length > 0 ? [`!apply -f ${file}-given.json`] : []),
    `create -f ${file}.json --dry-run=client -o yaml`,
    `create -f ${file}.json --dry-run=server -o json`,
    `create -f ${file}.json`,
    `create -f ${file}.json`,
    ...FORMS.map((form) => `get ${it} ${form}`.trim()),
    `get ${typeOf(kind)} --field-selector metadata.name=${name}`,
    `get ${typeOf(kind)} --field-selector metadata.name=${name} -o yaml`,
    `get ${typeOf(kind)} --field-selector metadata.name=${name} --sort-by=.metadata.uid -o wide`,
    ...(hasScale ? [`get ${it} --subresource=scale -o yaml`, `scale ${it} --replicas=3`] : []),
    ...(hasStatus ? [`get ${it} --subresource=status -o name`] : [`get ${it} --subresource=status`]),
    // Whether the controller of nodes has spoken yet is luck.
    kind.kind === 'Node' ? `describe ${it} --show-events=false` : `describe ${it}`,
    `label ${it} team=red`,
    `annotate ${it} note=written -o name`,
    `patch ${it} --type=merge -p '{"metadata":{"labels":{"merged":"yes"}}}'`,
    `patch ${it} --type=json -p '[{"op":"add","path":"/metadata/labels/json","value":"yes"}]'`,
    `patch ${it} -p '{"metadata":{"labels":{"strategic":"yes"}}}' -o yaml`,
    `patch ${it} --type=merge -p '{"nonsense":1}'`,
    `diff -f ${file}-changed.json`,
    `apply -f ${file}-changed.json`,
    `apply -f ${file}-changed.json --server-side`,
    `apply -f ${file}-changed.json --server-side --force-conflicts`,
    `apply -f ${file}-changed.json --dry-run=server -o yaml`,
    `KUBE_EDITOR='sed -i s/team:.blue/team:.green/' edit ${it}`,
    `replace -f ${file}-changed.json --dry-run=server`,
    `wait ${it} --for=jsonpath={.metadata.name}=${name} --timeout=5s`,
    `delete ${it} --dry-run=client`,
    `delete -f ${file}.json --dry-run=server -o name`,
    `delete ${it} --wait=false --grace-period=0 --force`,
    // Finalizers take their time, and who has the next turn wants to find nothing.
    ...(kind.namespaced ? [] : [`!wait ${it} --for=delete --timeout=60s`]),
    ...(given.length > 0 && !kind.namespaced ? [`!delete -f ${file}-given.json --wait=false`] : []),
  ]
}

/** A scene for each kind. Cluster-scoped kinds run in turns. */
export const lifeOfKinds: readonly Scene[] = kept.map((cases) => ({
  name: `kinds/${cases.kind.kind}.${cases.kind.version}.${cases.kind.group || 'core'}`,
  mode: cases.kind.namespaced ? 'twins' : 'turns',
  lines: linesFor(cases, (cases.valid['metadata'] as { name: string }).name),
}))

const EXPLAINED = ['', '--recursive', '--output=plaintext-openapiv2']
const FIELDS = ['spec', 'spec.nosuch']

export const explainedKinds: Scene = {
  name: 'kinds/explain',
  mode: 'reads',
  lines: kept
    .filter(({ kind }) => kind.group !== 'custom.example.com')
    .flatMap(({ kind }) => {
      const type = kind.plural
      const by = kind.group === '' ? '' : ` --api-version=${apiVersionOf(kind)}`
      return [
        ...EXPLAINED.map((flag) => `explain ${type}${by} ${flag}`.trim()),
        ...FIELDS.map((field) => `explain ${type}.${field}${by}`),
      ]
    }),
}
