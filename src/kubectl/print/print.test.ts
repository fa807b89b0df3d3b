import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { JsonObject } from '#lib/json/value.ts'

import { customColumnsPrinter, parseColumns, parseColumnsFile } from './custom-columns.ts'
import { type Printable, type Printer, WatchEvent } from './printer.ts'
import { sortBy, sortObjects } from './sorting.ts'
import { jsonPrinter, kyamlPrinter, namePrinter, omittingManagedFields, yamlPrinter } from './structured.ts'
import { tablePrinter } from './table.ts'
import { TabWriter } from './tabs.ts'
import { goTemplatePrinter, jsonPathPrinter } from './templates.ts'

function printed(printer: Printer, ...objects: Printable[]): string {
  let out = ''
  for (const object of objects) printer.print(object, { write: (text) => (out += text) })
  return out
}

function pod(name: string, extra: JsonObject = {}): JsonObject {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, ...extra }
}

const DEPLOYMENT: JsonObject = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } }

function table(columns: string[], ...rows: (string | number | null)[][]): JsonObject {
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    columnDefinitions: columns.map((name) => ({
      name,
      type: 'string',
      format: name === 'Name' ? 'name' : '',
      description: '',
      priority: name === 'Node' ? 1 : 0,
    })),
    rows: rows.map((cells) => ({
      cells,
      object: { metadata: { name: cells[0] ?? '', namespace: 'ns', labels: { app: 'a', 'x.io/b': '2' } } },
    })),
  }
}

describe('kubectl -o yaml, json, kyaml and name', () => {
  it('separate YAML documents with ---', () => {
    const text = 'apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n'
    assert.equal(printed(yamlPrinter(), DEPLOYMENT, DEPLOYMENT), `${text}---\n${text}`)
  })

  it('indent JSON by four spaces, with sorted keys', () => {
    const text =
      '{\n    "apiVersion": "apps/v1",\n    "kind": "Deployment",\n    "metadata": {\n        "name": "web"\n    }\n}\n'
    assert.equal(printed(jsonPrinter(), { kind: 'Deployment', ...DEPLOYMENT }), text)
  })

  it('print KYAML', () => {
    const text = '---\n{\n  apiVersion: "v1",\n  args: ["a\\nb"],\n'.replace('args: ["a\\nb"],\n', '')
    assert.ok(printed(kyamlPrinter(), pod('x')).startsWith(text))
    const folded = printed(kyamlPrinter(), pod('x', { text: 'a\n b', no: [1, 'y'] }))
    assert.ok(folded.includes('  "no": [\n    1,\n    "y",\n  ],\n'), folded)
    assert.ok(folded.includes('  text: "\\\n     a\\n\\\n    \\ b\\\n    ",\n'), folded)
  })

  it('print names with kind, API group and operation', () => {
    assert.equal(printed(namePrinter(), DEPLOYMENT, pod('x')), 'deployment.apps/web\npod/x\n')
    assert.equal(printed(namePrinter({ operation: 'created' }), DEPLOYMENT), 'deployment.apps/web created\n')
  })

  it('print watch events as single JSON lines', () => {
    const event = new WatchEvent('ADDED', pod('x'))
    const text =
      '{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","namespace":"default"}}}\n'
    assert.equal(printed(jsonPrinter(), event), text)
  })

  it('omit managedFields of objects and items without changing the object', () => {
    const object = pod('x', { metadata: { name: 'x', managedFields: [] } })
    const list = { apiVersion: 'v1', kind: 'List', items: [object] }
    assert.ok(!printed(omittingManagedFields(yamlPrinter()), list).includes('managedFields'))
    assert.ok('managedFields' in (object.metadata as object))
  })
})

describe('kubectl table output', () => {
  const nowMs = (): number => 0

  it('prints headers once, and only if there are rows', () => {
    const printer = tablePrinter({ nowMs })
    const text = printed(
      printer,
      table(['Name', 'Ready']),
      table(['Name', 'Ready'], ['a', '1/1']),
      table(['Name', 'Ready'], ['b', '0/1']),
    )
    assert.equal(text, 'NAME   READY\na      1/1\nb     0/1\n')
  })

  it('keeps the column widths of earlier output of the same writer', () => {
    const printer = tablePrinter({ nowMs })
    const tabs = new TabWriter()
    printer.print(table(['Name', 'Ready'], ['a-long-name', '1/1']), tabs)
    const first = tabs.flush()
    printer.print(table([], ['b', '0/1']), tabs)
    assert.equal(first + tabs.flush(), 'NAME          READY\na-long-name   1/1\nb             0/1\n')
  })

  it('adds columns for namespace, labels, kind and event', () => {
    const options = { nowMs, withNamespace: true, showLabels: true, labelColumns: ['x.io/b'], kind: 'deployment.apps' }
    const text = printed(tablePrinter(options), new WatchEvent('ADDED', table(['Name', 'Node'], ['a', 'n'])))
    assert.equal(
      text,
      'EVENT      NAMESPACE   NAME                B     LABELS\nADDED      ns          deployment.apps/a   2     app=a,x.io/b=2\n',
    )
    assert.equal(
      printed(tablePrinter({ nowMs, wide: true, noHeaders: true }), table(['Name', 'Node'], ['a', 'n'])),
      'a     n\n',
    )
  })

  it('cuts cells at line breaks and escapes control characters', () => {
    const text = printed(tablePrinter({ nowMs, noHeaders: true }), table(['Name', 'Text'], ['a\nb', '\u001b[1m']))
    assert.equal(text, 'a...   ^[[1m\n')
  })

  it('prints name and age if the server sends no table', () => {
    const object = pod('x', { metadata: { name: 'x', creationTimestamp: '1970-01-01T00:00:00Z' } })
    assert.equal(printed(tablePrinter({ nowMs: () => 90_000 }), object, object), 'NAME   AGE\nx      90s\nx     90s\n')
  })
})

describe('kubectl -o custom-columns', () => {
  it('prints the values of JSONPath expressions', () => {
    const list = { apiVersion: 'v1', kind: 'List', items: [pod('a', { n: [1, 2] }), pod('b')] }
    const columns = parseColumns('NAME:.metadata.name,N:.n[*]')
    assert.equal(printed(customColumnsPrinter(columns), list), 'NAME   N\na      1,2\nb      <none>\n')
  })

  it('reads its columns from a file', () => {
    assert.deepEqual(parseColumnsFile('A B\nkind {.metadata.name}\n'), [
      { header: 'A', path: '{.kind}' },
      { header: 'B', path: '{.metadata.name}' },
    ])
    assert.throws(
      () => parseColumnsFile('A B\nkind\n'),
      /number of headers \(2\) and field specifications \(1\) don't match/,
    )
    assert.throws(() => parseColumns('A'), {
      message: 'unexpected custom-columns spec: A, expected <header>:<json-path-expr>',
    })
  })
})

describe('kubectl --sort-by', () => {
  it('orders quantities by value, and objects without the field first', () => {
    const names = sortObjects([pod('a', { v: '2Gi' }), pod('b'), pod('c', { v: '100Mi' })], '.v')
    assert.deepEqual(
      names.map(({ metadata }) => (metadata as JsonObject).name),
      ['b', 'c', 'a'],
    )
  })

  it('fails if no object has the field', () => {
    assert.throws(() => sortBy([pod('a')], (object) => object, '{.nope}'), {
      message: `couldn't find any field with path "{.nope}" in the list of objects`,
    })
  })
})

describe('kubectl -o jsonpath and go-template', () => {
  it("report invalid templates with upstream's errors", () => {
    assert.throws(() => jsonPathPrinter('{.x'), { message: 'error parsing jsonpath {.x, unclosed action' })
    assert.throws(() => goTemplatePrinter('{{'), {
      message: 'error parsing template {{, template: output:1: unclosed action',
    })
    assert.equal(printed(jsonPathPrinter('{.kind}'), DEPLOYMENT), 'Deployment')
    assert.equal(printed(goTemplatePrinter('{{.kind}}'), DEPLOYMENT), 'Deployment')
  })
})
