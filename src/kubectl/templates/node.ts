/** The syntax tree of a Go template, and the text of its nodes in error messages. */

interface At {
  /** The offset in the source for lines and columns in messages. */
  readonly at: number
}

export type Expression = At &
  (
    | { readonly type: 'field'; readonly names: readonly string[] }
    | { readonly type: 'variable'; readonly names: readonly string[] }
    | { readonly type: 'chain'; readonly node: Expression; readonly names: readonly string[] }
    | { readonly type: 'identifier'; readonly name: string }
    | { readonly type: 'dot' }
    | { readonly type: 'nil' }
    | { readonly type: 'bool'; readonly value: boolean }
    | { readonly type: 'number'; readonly text: string; readonly value: bigint | number }
    | { readonly type: 'string'; readonly text: string; readonly value: string }
    | Pipeline
  )

export interface Command extends At {
  readonly type: 'command'
  readonly args: readonly Expression[]
}

export interface Pipeline extends At {
  readonly type: 'pipe'
  readonly variables: readonly string[]
  readonly isAssign: boolean
  readonly commands: readonly Command[]
}

export interface List extends At {
  readonly type: 'list'
  readonly nodes: Node[]
}

export type Branch = At & {
  readonly type: 'if' | 'with' | 'range'
  readonly pipe: Pipeline
  readonly list: List
  readonly otherwise: List | undefined
}

export type Node =
  | Branch
  | List
  | (At &
      (
        | { readonly type: 'text'; readonly text: string }
        | { readonly type: 'action'; readonly pipe: Pipeline }
        | { readonly type: 'template'; readonly name: string; readonly pipe: Pipeline | undefined }
        | { readonly type: 'break' }
        | { readonly type: 'continue' }
      ))

export function expressionText(node: Expression | Command): string {
  switch (node.type) {
    case 'field':
      return `.${node.names.join('.')}`
    case 'variable':
      return node.names.join('.')
    case 'chain':
      return `${argumentText(node.node)}.${node.names.join('.')}`
    case 'identifier':
      return node.name
    case 'dot':
      return '.'
    case 'nil':
      return 'nil'
    case 'bool':
      return String(node.value)
    case 'number':
    case 'string':
      return node.text
    case 'command':
      return node.args.map(argumentText).join(' ')
    case 'pipe': {
      const declared = node.variables.length === 0 ? '' : `${node.variables.join(', ')} ${node.isAssign ? '=' : ':='} `
      return declared + node.commands.map(expressionText).join(' | ')
    }
  }
}

function argumentText(node: Expression): string {
  return node.type === 'pipe' ? `(${expressionText(node)})` : expressionText(node)
}

export function nodeText(node: Node): string {
  switch (node.type) {
    case 'list':
      return node.nodes.map(nodeText).join('')
    case 'text':
      return node.text
    case 'action':
      return `{{${expressionText(node.pipe)}}}`
    case 'template': {
      const name = JSON.stringify(node.name)
      return node.pipe === undefined ? `{{template ${name}}}` : `{{template ${name} ${expressionText(node.pipe)}}}`
    }
    case 'break':
    case 'continue':
      return `{{${node.type}}}`
    default: {
      const otherwise = node.otherwise === undefined ? '' : `{{else}}${nodeText(node.otherwise)}`
      return `{{${node.type} ${expressionText(node.pipe)}}}${nodeText(node.list)}${otherwise}{{end}}`
    }
  }
}
