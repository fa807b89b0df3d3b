/**
 * Compares our printers with upstream's packages: `node test/upstream/kubectl-printers.ts [--count N] [--seed N]
 * [--printer NAME]`. The inputs are random objects with random JSONPath expressions and Go templates, valid and
 * invalid, and tables, custom columns, YAML, JSON, KYAML and names. Output and errors must be equal. Exits with 1 on a
 * difference. Needs Go, once.
 */
import { parseArgs } from 'node:util'

import { createSeededRandom } from '#lib/random.ts'

import { compileJsonPath, showOrExplain } from '../../src/kubectl/jsonpath/jsonpath.ts'
import { customColumnsPrinter, parseColumns } from '../../src/kubectl/print/custom-columns.ts'
import type { Printer } from '../../src/kubectl/print/printer.ts'
import { jsonPrinter, kyamlPrinter, namePrinter, yamlPrinter } from '../../src/kubectl/print/structured.ts'
import { tablePrinter } from '../../src/kubectl/print/table.ts'
import { compileGoTemplate } from '../../src/kubectl/templates/template.ts'
import { Draw } from './draw.ts'
import { drawCase } from './kubectl-printers/cases.ts'
import { judge, type Outcome, type PrintCase } from './kubectl-printers/judge.ts'

const { values: options } = parseArgs({
  options: {
    count: { type: 'string', default: '4000' },
    seed: { type: 'string', default: '1' },
    printer: { type: 'string' },
  },
})

type Json = Parameters<Printer['print']>[0]

function ours(one: PrintCase): Outcome {
  let out = ''
  try {
    const print = printing(one)
    for (const object of one.objects) print(object as Json, (text) => (out += text))
    return { out }
  } catch (error) {
    return { out, error: (error as Error).message }
  }
}

function printing(one: PrintCase): (object: Json, write: (text: string) => void) => void {
  const template = one.template ?? ''
  if (one.printer === 'jsonpath') {
    const path = compileJsonPath(template, { allowMissingKeys: one.strict !== true, asJson: one.asJson === true })
    return (object, write) => write(showOrExplain(path, template, object))
  }
  if (one.printer === 'template') {
    const compiled = compileGoTemplate(template, { allowMissingKeys: one.strict !== true })
    return (object, write) => compiled.fillIn(object as never, write)
  }
  const printer = printerOf(one)
  return (object, write) => printer.print(object, { write })
}

function printerOf(one: PrintCase): Printer {
  const given: { noHeaders?: boolean } | undefined = one.options
  switch (one.printer) {
    case 'columns':
      return customColumnsPrinter(parseColumns(one.template ?? ''), given)
    case 'yaml':
      return yamlPrinter()
    case 'json':
      return jsonPrinter()
    case 'kyaml':
      return kyamlPrinter()
    case 'name':
      return namePrinter()
    default:
      return tablePrinter({ nowMs: () => 0, ...given })
  }
}

/** Upstream walks maps in any order, each time another. */
function textOf({ template = '', printer }: PrintCase, text: string): string {
  return printer !== 'template' && /\.\.|\.\*/.test(template)
    ? Array.from(text.replaceAll(/\s+/g, ' ')).sort().join('')
    : text
}

const draw = new Draw(createSeededRandom(Number(options.seed)))
const cases = Array.from({ length: Number(options.count) }, () => drawCase(draw)).filter(
  ({ printer }) => options.printer === undefined || options.printer === printer,
)
const theirs = judge(cases)
const counts = new Map<string, { same: number; different: number; failed: number }>()
let shown = 0
for (const [at, one] of cases.entries()) {
  const [expected, got] = [theirs[at] as Outcome, ours(one)]
  const count = counts.get(one.printer) ?? { same: 0, different: 0, failed: 0 }
  counts.set(one.printer, count)
  // Where upstream crashes there is nothing to be like.
  const isSame =
    expected.error === 'panic' || (textOf(one, expected.out) === textOf(one, got.out) && expected.error === got.error)
  count[isSame ? 'same' : 'different']++
  if (expected.error !== undefined) count.failed++
  if (isSame || shown++ > 20) continue
  const { objects, ...rest } = one
  process.stdout.write(
    `${JSON.stringify(rest)}\n  object ${JSON.stringify(objects).slice(0, 600)}\n` +
      `  upstream ${JSON.stringify(expected).slice(0, 600)}\n  ours     ${JSON.stringify(got).slice(0, 600)}\n`,
  )
}
for (const [name, { same, different, failed }] of counts) {
  process.stdout.write(
    `${name}: ${same} outputs equal upstream's (${failed} of them are errors), ${different} differ\n`,
  )
}
if ([...counts.values()].some(({ different }) => different > 0)) process.exitCode = 1
