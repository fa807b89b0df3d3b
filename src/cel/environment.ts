/**
 * Environment: declares the names that an expression may use and compiles text to programs. Each feature that uses
 * expressions creates one environment and reuses it.
 */
import type { Checked } from './checking/checked.ts'
import { check } from './checking/checker.ts'
import { type Declarations, declare } from './checking/declarations.ts'
import { validate } from './checking/validators.ts'
import { estimateCost } from './cost/estimator.ts'
import { baseLibraries } from './libraries/index.ts'
import type { Library, Span } from './library.ts'
import { plan } from './planner/plan.ts'
import type { Program } from './program.ts'
import type { Expression } from './syntax/ast.ts'
import { parse } from './syntax/parser.ts'
import { type Issue, report } from './syntax/source.ts'
import { walk } from './syntax/walk.ts'
import type { CelType } from './type.ts'

export interface EnvironmentOptions {
  /** Default: everything Kubernetes 1.36 has. */
  readonly libraries?: readonly Library[]
  /** Variables by name. */
  readonly variables: Readonly<Record<string, CelType>>
  /**
   * Declared types that literals may name (`JSONPatch{…}`), besides those of libraries: found when a name is looked for, so
   * that there may be any number of them (`Object.spec.template{…}`).
   */
  readonly typeNamed?: (name: string) => CelType | undefined
  /** Whether there is `cel.bind(name, value, result)`. */
  readonly hasBind?: boolean
}

export interface Environment {
  /** Parses and checks. Never throws for a bad expression. */
  compile(source: string): Compilation
  /** The same with more variables. */
  extend(variables: Readonly<Record<string, CelType>>): Environment
}

export type Compilation =
  | Compiled
  | { readonly issues: readonly Issue[]; /** Upstream's whole report. */ readonly report: string }

export interface Compiled {
  readonly issues?: undefined
  readonly type: CelType
  /** Of `oldSelf` and the like: whether the expression, with macros expanded, uses the variable. */
  uses(variable: string): boolean
  /** Whether it selects the field of the variable anywhere: `x.f`, `x.?f`, `has(x.f)`. */
  selects(variable: string, field: string): boolean
  /** The static estimate; sizes of variables are in their types. */
  estimateCost(): Span
  /** Plans it; throws CelError with upstream's text when constant parts already fail (`programError`). */
  program(): Program
}

export function createEnvironment(options: EnvironmentOptions): Environment {
  const { libraries = baseLibraries, variables, typeNamed } = options
  const declarations = declare(libraries, variables, typeNamed)
  return {
    compile: (source) => compile(source, declarations, options.hasBind),
    extend: (more) => createEnvironment({ ...options, variables: { ...variables, ...more } }),
  }
}

function compile(source: string, declarations: Declarations, hasBind?: boolean): Compilation {
  const { tree, findings } = parse(source, hasBind)
  if (tree === undefined) return report(source, findings)
  const { checked, findings: wrong } = check(tree, declarations)
  if (wrong.length > 0) return report(source, wrong)
  const invalid = validate(checked)
  return invalid.length > 0 ? report(source, invalid) : compiled(checked, declarations)
}

function compiled(checked: Checked, declarations: Declarations): Compiled {
  return {
    type: checked.types[checked.tree.root.id] as CelType,
    uses: (name) => checked.references.some((found) => found?.kind === 'variable' && found.name === name),
    selects: (variable, field) => selects(checked.tree.root, variable, field),
    estimateCost: () => estimateCost(checked, declarations.variables),
    program: () => plan(checked),
  }
}

function selects(root: Expression, variable: string, field: string): boolean {
  let isFound = false
  const isVariable = (node: Expression | undefined): boolean => node?.kind === 'identifier' && node.name === variable
  walk(root, (node) => {
    if (node.kind === 'select') isFound ||= node.field === field && isVariable(node.operand)
    if (node.kind !== 'call' || node.function !== '_?._') return
    const [operand, name] = node.args
    isFound ||=
      isVariable(operand) && name?.kind === 'literal' && name.value.type === 'string' && name.value.value === field
  })
  return isFound
}
