/** Generates random objects, templates and options. Maps have one key where upstream iterates in random order. */
import type { Draw } from '../draw.ts'
import type { PrintCase } from './judge.ts'

const KEYS = ['a', 'b', 'name', 'list', 'x-y', 'on', 'k.8s', '1', 'metadata']
const TEXTS = [
  'one',
  'two',
  '',
  'a b',
  'yes',
  '1',
  'multi\nline',
  ' lead',
  'tab\tin',
  'é',
  '😀',
  '<b>&"\'',
  'x: y',
  '#c',
  '- d',
  '1e3',
  '0x1f',
  '2020-01-02',
  'null',
  '~',
  'trail ',
  'a\n\nb\n',
  'long '.repeat(20),
  '\u001b[1m',
  'aGVsbG8=',
  '100m',
  '2Gi',
  'a\r\nb',
  '\u0001',
  '\ttabbed\n lines',
]

function value(draw: Draw, depth: number): unknown {
  const kind = draw.below(depth > 3 ? 5 : 9)
  if (kind < 2) return draw.of(TEXTS)
  if (kind === 2) return draw.of([0, 1, -3, 42, 1_000_000, 1.5, 2.25, 12_345_678, 1e21, 0.000_001, 100_000])
  if (kind === 3) return draw.chance(0.5)
  if (kind === 4) return draw.chance(0.5) ? null : draw.of(TEXTS)
  if (kind < 7) return Array.from({ length: draw.below(4) }, () => value(draw, depth + 1))
  return map(draw, depth + 1)
}

function map(draw: Draw, depth: number): Record<string, unknown> {
  return Object.fromEntries(Array.from({ length: draw.below(4) }, () => [draw.of(KEYS), value(draw, depth)]))
}

export function drawObject(draw: Draw): Record<string, unknown> {
  return {
    apiVersion: draw.of(['v1', 'apps/v1', 'example.com/v1beta1']),
    kind: draw.of(['Pod', 'Widget']),
    metadata: {
      name: draw.of(['web', 'db', 'x']),
      namespace: 'default',
      labels: { app: 'web', tier: draw.of(['a', 'b']) },
    },
    spec: map(draw, 1),
    people: Array.from({ length: draw.below(4) }, () => ({
      name: draw.of(['ann', 'bob', 'cy']),
      age: draw.of([1, 20, 33]),
      tags: Array.from({ length: draw.below(3) }, () => draw.of(TEXTS)),
      ...(draw.chance(0.5) ? { size: draw.of([1.5, 2, 'big', null]) } : {}),
    })),
    ...(draw.chance(0.2) ? { nothing: null } : {}),
  }
}

const PATHS = [
  '.kind',
  '.metadata.name',
  '.spec',
  '.spec.a',
  '.people',
  '.people[*].name',
  '.people[0]',
  '.people[-1].age',
  '.nope',
  '.nope.x',
  '.people[0:2].name',
  '.people[0:].age',
  '.people[::2].name',
  '.people[:-1].name',
  '.people[5]',
  '.people[1:0]',
  '.people[0:3:0].x',
  "['kind']",
  "['metadata']['name']",
  '.metadata.labels.app',
  '.people[0].name[0]',
  '.kind[0]',
  '.people[*].tags[*]',
  '.spec.*',
  '..name',
  '.people[0,1].name',
  "['kind','apiVersion']",
  '$.kind',
  '@.kind',
  '.people[?(@.age>10)].name',
  '.people[?(@.name=="bob")].age',
  ".people[?(@.name!='ann')].name",
  '.people[?(@.size)].name',
  '.people[?(@.age<=20)].age',
  '.people[?(@.size>1.5)].name',
  '.nothing',
  '.people[?(@.size==1.5)].name',
  '.people[?(@.age=>1)].age',
  '.people[?(@.tags[0]=="one")].name',
  '.metadata.labels[?(@.x)]',
  String.raw`.spec.k\.8s`,
  '.people[*]',
  '.people[*].size',
  '.people[a]',
  '.people[',
  '.people[?(@.age>10)',
  '.people[?(@.age]',
  '...name',
  '..',
  '.people[?(@.age==true)].name',
  '.people[-9]',
  '.people[99999999999999999999]',
  '1',
  '-2.50',
  '"text"',
  "'sin gle'",
  '"unterminated',
  'true',
  String.raw`"a\tb\u00e9"`,
  String.raw`"\q"`,
  '.people.name',
  '.kind.*',
  '|',
  '.spec.x-y',
  'range',
  'end',
  '.people[*].tags[0]',
  '.*.name',
  '1.2.3',
]

function jsonPath(draw: Draw): string {
  const parts = Array.from({ length: 1 + draw.below(3) }, () => {
    const inner = `{${draw.of(PATHS)}}`
    const kind = draw.below(8)
    if (kind === 0) return draw.of(['text ', '\n', 'é:', '}'])
    if (kind === 1) return `{range .people[*]}${inner}{"\\n"}{end}`
    if (kind === 2) return `{range .people[*]}{range .tags[*]}${inner}{@}{end}{.name};{end}`
    if (kind === 3) return `{range ${draw.of(PATHS)}}${inner}`
    return kind === 4 ? `{${draw.of(PATHS)} ${draw.of(PATHS)}}` : inner
  })
  return parts.join(draw.of(['', ' ', '-']))
}

const EXPRESSIONS = [
  '.kind',
  '.metadata.name',
  '.people',
  '.spec',
  '.spec.a',
  '.nope',
  '.nope.x',
  '.nothing',
  '.nothing.x',
  '.kind.x',
  '.',
  '$',
  '$.kind',
  '"text"',
  '`raw`',
  '1',
  '-5',
  '1.5',
  '0x1f',
  "'a'",
  'true',
  'nil',
  '(index .people 0)',
  '(index .people 0).name',
  '(len .people)',
  '(len .kind)',
  'index .people 0 "name"',
  'index .people 9',
  'index .spec "a"',
  'index .kind 0',
  'index .people .kind',
  'len .nope',
  'len 3',
  'len .spec',
  'slice .kind 1',
  'slice .kind 1 2',
  'slice .people 0 1',
  'slice .kind 9',
  'slice .spec',
  'eq .kind "Pod"',
  'eq .kind "Pod" "Widget"',
  'eq .nope nil',
  'eq .spec .spec',
  'eq 1 1.0',
  'ne .kind "Pod"',
  'lt 1 2',
  'lt "a" "b"',
  'gt 2 1.5',
  'le 1 1',
  'ge 3 4',
  'lt true false',
  'eq .kind',
  'and .kind .nope',
  'or .nope .kind',
  'not .kind',
  'and true 1 ""',
  'or 0 ""',
  'print .kind 1 2',
  'print 1 2 "a" "b"',
  'println .kind 3',
  'printf "%s-%v" .kind .people',
  'printf "%d %5d|%-5d|%05d" 1 2 3 4',
  'printf "%q %x" .kind .kind',
  'printf "%d" .kind',
  'printf "%s" 1',
  'printf "%v %v" 1',
  'printf "%v" 1 2',
  'printf "%6.2f|%e|%g" 1.5 2.5 3.0',
  'printf "%T %T %T" .people .spec 1',
  'printf "%t" true',
  'printf "%c %U" 65 65',
  'printf "%#v" .spec',
  'printf "%!" 1',
  'printf "%z" .kind',
  'printf "%+d % d" 1 2',
  'printf "%10s|%-10s|%.2s" "abc" "abc" "abc"',
  'printf "%s" .nope',
  'printf "%s" .people',
  'html .kind',
  'html "<a href=\'x\'>&\\""',
  'js "it\'s <b>\\n"',
  'urlquery "a b&c/é"',
  'html 1 2',
  'exists . "spec" "a"',
  'exists .people 0 "name"',
  'exists . "nope" "x"',
  'exists .people 5',
  'exists .spec',
  'base64decode "aGVsbG8="',
  'base64decode "!!"',
  'base64decode .kind',
  'base64decode 1',
  'nosuch .kind',
  '.kind | len',
  '.kind | printf "%s"',
  '.people | len | printf "%03d"',
  '.kind | eq "Pod"',
  '.kind 1',
  '1 2',
  '.kind | 1',
  '(.kind)',
  '(.kind | len)',
  '.people.name',
  '"x".y',
  '$x',
  'index',
  'index nil 1',
  'not',
  'lt 1',
  'call .kind',
  '.x-y',
  '.kind ; 1',
  '.kind |',
  '| .kind',
  '()',
  'printf "%v" nil',
  'index .spec 1',
  'len nil',
  'eq .people .people',
  'index .spec "on" "x"',
  '1_000',
  '089',
  "'ab'",
  '.metadata.labels',
]

/** Mistakes, mostly. */
const ODD = [
  '{{',
  '{{end}}',
  '{{else}}',
  '{{if}}x{{end}}',
  '{{if .kind}}',
  '{{"a',
  '{{.kind}',
  '{{range $a,$b,$c := .x}}{{end}}',
  '{{break}}',
  '{{(.kind}}',
  '{{.kind)}}',
  '{{$y}}',
  '{{range $i := 3}}{{$i}}{{end}}',
  '{{define "q"}}',
  '{{with $z := .kind}}{{$z}}{{end}}',
  '{{/* x',
  '{{:}}',
  '{{\n.kind\n}}',
  'a\n\n{{.kind.x}}',
  '{{define x}}{{end}}',
  '{{template .kind}}',
  '{{@}}',
  '{{é}}',
  '{{.kind\n"a',
  '{{printf "%s"\n.kind.x}}',
]

function goTemplate(draw: Draw): string {
  const e = (): string => draw.of(EXPRESSIONS)
  const parts = Array.from({ length: 1 + draw.below(3) }, () => {
    const makers = [
      () => `{{${e()}}}`,
      () => `{{${e()}}}`,
      () => `{{- ${e()} -}}`,
      () => `{{if ${e()}}}yes{{else}}no{{end}}`,
      () => `{{if ${e()}}}1{{else if ${e()}}}2{{else}}3{{end}}`,
      () => `{{with ${e()}}}[{{.}}]{{else}}none{{end}}`,
      () => `{{range .people}}{{.name}}={{.age}} {{end}}`,
      () => `{{range $i, $p := .people}}{{$i}}:{{$p.name}}{{if eq $i 1}}{{break}}{{end}},{{else}}empty{{end}}`,
      () => `{{range $k, $v := .metadata.labels}}{{$k}}-{{$v}};{{end}}`,
      () => `{{range ${e()}}}<{{.}}>{{else}}-{{end}}`,
      () => `{{$x := ${e()}}}{{$x}}{{$x = 2}}{{$x}}`,
      () => `{{define "T"}}t:{{.}}{{end}}{{template "T" ${e()}}}`,
      () => `{{block "B" .kind}}b{{.}}{{end}}`,
      () => `{{/* c */}}{{- /* d */ -}} text \n`,
      () => `{{template "none"}}`,
      () => `{{range .people}}{{${e()}}}{{continue}}x{{end}}`,
      () => draw.of(ODD),
    ]
    return draw.of(makers)()
  })
  return parts.join(draw.of(['', ' ', '\n']))
}

function table(draw: Draw): object {
  const columns = [
    { name: 'Name', type: 'string', format: 'name', description: '', priority: 0 },
    { name: 'Ready', type: 'string', format: '', description: '', priority: 0 },
    { name: 'Node', type: 'string', format: '', description: '', priority: draw.below(2) },
    { name: 'Count', type: 'integer', format: '', description: '', priority: 0 },
  ].slice(0, 1 + draw.below(4))
  const rows = Array.from({ length: draw.below(5) }, () => ({
    cells: columns.map(({ type }) =>
      type === 'integer' ? draw.of([1, 22_000, 1.5]) : draw.of([...TEXTS, null, true]),
    ),
    object: draw.of([
      {
        kind: 'PartialObjectMetadata',
        apiVersion: 'meta.k8s.io/v1',
        metadata: { name: 'x', namespace: 'ns', labels: { app: 'web', z: '1' } },
      },
      {
        kind: 'PartialObjectMetadata',
        apiVersion: 'meta.k8s.io/v1',
        metadata: { name: 'y', namespace: 'other-namespace' },
      },
    ]),
  }))
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: {},
    columnDefinitions: draw.chance(0.8) ? columns : [],
    rows,
  }
}

/** One case of any printer. */
export function drawCase(draw: Draw): PrintCase {
  const strict = draw.chance(0.3)
  const kind = draw.below(16)
  const objects = [drawObject(draw)]
  if (kind < 5) return { printer: 'jsonpath', template: jsonPath(draw), strict, asJson: draw.chance(0.1), objects }
  if (kind < 11) return { printer: 'template', template: goTemplate(draw), strict, objects }
  if (kind === 11) {
    const column = (): string => `${draw.of(['A', 'LONGER', ''])}:${draw.of(PATHS)}`
    const template = Array.from({ length: 1 + draw.below(3) }, column).join(',')
    const list = { apiVersion: 'v1', kind: 'List', metadata: {}, items: [drawObject(draw), drawObject(draw)] }
    return {
      printer: 'columns',
      template,
      objects: draw.chance(0.5) ? [list] : objects,
      options: { noHeaders: strict },
    }
  }
  if (kind === 12)
    return { printer: draw.of(['yaml', 'json', 'name'] as const), objects: [...objects, drawObject(draw)] }
  if (kind === 13) return { printer: 'kyaml', objects }
  const given = {
    noHeaders: draw.chance(0.2),
    wide: draw.chance(0.3),
    withNamespace: draw.chance(0.3),
    showLabels: draw.chance(0.3),
    labelColumns: draw.chance(0.3) ? ['app', 'example.com/none'] : [],
  }
  return { printer: 'table', objects: Array.from({ length: 1 + draw.below(3) }, () => table(draw)), options: given }
}
