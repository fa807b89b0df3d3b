import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { JsonValue } from '#lib/json/value.ts'

import { compileGoTemplate } from './template.ts'

const POD: JsonValue = {
  kind: 'Pod',
  metadata: { name: 'web', labels: { app: 'a', tier: 'b' } },
  people: [
    { name: 'ann', age: 33 },
    { name: 'bob', age: 20 },
  ],
  large: 1_000_000,
  nothing: null,
}

function fill(template: string, options: { allowMissingKeys?: boolean } = {}): string {
  let out = ''
  compileGoTemplate(template, options).fillIn(POD, (text) => (out += text))
  return out
}

describe('Go template of kubectl', () => {
  const rows: [template: string, text: string][] = [
    ['{{.kind}} {{.metadata.name}}', 'Pod web'],
    ['{{.nope}} {{.nope.deeper}} {{.nothing}}', '<no value> <no value> <no value>'],
    ['{{.metadata.labels}} {{.large}}', 'map[app:a tier:b] 1000000'],
    ['a {{- .kind -}} b', 'aPodb'],
    ['{{/* said */}}x', 'x'],
    ['{{range .people}}{{.name}}={{.age}} {{end}}', 'ann=33 bob=20 '],
    ['{{range $i, $p := .people}}{{$i}}{{$p.name}}{{else}}none{{end}}', '0ann1bob'],
    ['{{range $k, $v := .metadata.labels}}{{$k}}{{$v}};{{end}}', 'appa;tierb;'],
    ['{{range .people}}{{if eq .name "bob"}}{{break}}{{end}}{{.name}}{{end}}', 'ann'],
    ['{{with .nope}}x{{else with .kind}}[{{.}}]{{end}}', '[Pod]'],
    ['{{$x := 1}}{{if true}}{{$x = 2}}{{end}}{{$x}}', '2'],
    ['{{define "T"}}<{{.}}>{{end}}{{template "T" .kind}}', '<Pod>'],
    ['{{block "B" .kind}}b{{.}}{{end}}', 'bPod'],
    ['{{index .people 1 "name"}} {{len .people}} {{slice .kind 1 2}}', 'bob 2 o'],
    ['{{and .kind .nope | not}} {{or .nope "x"}}', 'true x'],
    ['{{printf "%-5s|%03d|%q|%.1f" "a" 7 "b" 1.25}}', 'a    |007|"b"|1.2'],
    ['{{printf "%d" .kind}} {{printf "%s"}} {{printf "a" 1}}', '%!d(string=Pod) %!s(MISSING) a%!(EXTRA int=1)'],
    ['{{html "<a>"}} {{urlquery "a b"}} {{js "it\'s"}}', String.raw`&lt;a&gt; a+b it\'s`],
    ['{{exists . "people" 0 "name"}} {{exists . "nope" "x"}}', 'true false'],
    ['{{base64decode "aGVsbG8="}}', 'hello'],
    ['{{eq .kind "Job" "Pod"}} {{lt 1 2}} {{ge "a" "b"}}', 'true true false'],
  ]
  for (const [template, text] of rows) it(`executes ${template}`, () => assert.equal(fill(template), text))

  const refused: [template: string, message: string][] = [
    ['{{.kind', 'template: output:1: unclosed action'],
    ['{{if .kind}}', 'template: output:1: unexpected EOF'],
    ['{{end}}', 'template: output:1: unexpected {{end}}'],
    ['{{nosuch}}', 'template: output:1: function "nosuch" not defined'],
    ['{{$y}}', 'template: output:1: undefined variable "$y"'],
    ['{{if}}{{end}}', 'template: output:1: missing value for if'],
    ['{{"a', 'template: output:1: unterminated quoted string'],
    ['{{break}}', 'template: output:1: {{break}} outside {{range}}'],
  ]
  for (const [template, message] of refused) {
    it(`is refused: ${template}`, () => assert.throws(() => compileGoTemplate(template), { message }))
  }

  const failing: [template: string, message: string][] = [
    [
      'x\n{{.kind.x}}',
      'template: output:2:7: executing "output" at <.kind.x>: can\'t evaluate field x in type interface {}',
    ],
    [
      '{{.nothing.x}}',
      'template: output:1:10: executing "output" at <.nothing.x>: nil pointer evaluating interface {}.x',
    ],
    [
      '{{index .people 9}}',
      'template: output:1:2: executing "output" at <index .people 9>: error calling index: index out of range: 9',
    ],
    [
      '{{template "none"}}',
      'template: output:1:11: executing "output" at <{{template "none"}}>: template "none" not defined',
    ],
    ['{{range .kind}}{{end}}', 'template: output:1:8: executing "output" at <.kind>: range can\'t iterate over Pod'],
  ]
  for (const [template, reason] of failing) {
    it(`reports the position of the error in ${template}`, () => {
      const message = `error executing template ${JSON.stringify(template)}: ${reason}`
      assert.throws(() => fill(template), { message })
    })
  }

  it('fails for a missing key if configured', () => {
    assert.throws(() => fill('{{.nope}}', { allowMissingKeys: false }), /map has no entry for key "nope"/)
  })
})
