/**
 * cel-go's grammar as data. Only the error messages need it (syntax-errors.ts); parser.ts parses valid text without it.
 */
import type { TokenKind } from './lexer.ts'

export type Element =
  | { readonly kind: 'token'; readonly tokens: readonly TokenKind[] }
  | { readonly kind: 'rule'; readonly rule: RuleName; readonly precedence: number }
  | { readonly kind: 'sequence'; readonly parts: readonly Element[] }
  | { readonly kind: 'optional'; readonly part: Element }
  | { readonly kind: 'star' | 'plus'; readonly part: Element; readonly continues: Continues }
  | { readonly kind: 'choice'; readonly parts: readonly Element[]; readonly choose: Choose }

export type RuleName =
  | ('start' | 'expr' | 'conditionalOr' | 'conditionalAnd' | 'relation' | 'calc' | 'unary' | 'member' | 'primary')
  | ('exprList' | 'listInit' | 'fieldInitializerList' | 'optField' | 'mapInitializerList' | 'escapeIdent')
  | ('optExpr' | 'literal')

/** The n-th token from here; 1 is the next. */
export type Look = (n: number) => TokenKind

/** Whether a loop goes on, in a rule invoked with a precedence; otherwise how far it was looked when nothing fitted. */
export type Continues = (look: Look, precedence: number) => boolean | number

/** Which part; negative: how far it was looked when nothing fitted. */
export type Choose = (look: Look) => number

const token = (...tokens: TokenKind[]): Element => ({ kind: 'token', tokens })
const rule = (name: RuleName, precedence = 0): Element => ({ kind: 'rule', rule: name, precedence })
const sequence = (...parts: Element[]): Element => ({ kind: 'sequence', parts })
const optional = (...parts: Element[]): Element => ({ kind: 'optional', part: sequence(...parts) })
const star = (continues: Continues, ...parts: Element[]): Element => ({
  kind: 'star',
  part: sequence(...parts),
  continues,
})
const plus = (continues: Continues, part: Element): Element => ({ kind: 'plus', part, continues })
const choice = (choose: Choose, ...parts: Element[]): Element => ({ kind: 'choice', parts, choose })

const STARTS_LITERAL: readonly TokenKind[] = [
  'true',
  'false',
  'null',
  'NUM_FLOAT',
  'NUM_INT',
  'NUM_UINT',
  'STRING',
  'BYTES',
]
const STARTS_MEMBER: ReadonlySet<TokenKind> = new Set<TokenKind>([
  '[',
  '{',
  '(',
  '.',
  '-',
  'IDENTIFIER',
  ...STARTS_LITERAL,
])
const STARTS_ITEM: ReadonlySet<TokenKind> = new Set<TokenKind>(['!', '?', ...STARTS_MEMBER])
const STARTS_FIELD: ReadonlySet<TokenKind> = new Set<TokenKind>(['?', 'IDENTIFIER', 'ESC_IDENTIFIER'])

const isNumber = (kind: TokenKind): boolean => kind === 'NUM_INT' || kind === 'NUM_FLOAT'

const on =
  (...tokens: TokenKind[]): Continues =>
  (look) =>
    tokens.includes(look(1))

/** A comma may also be the last. */
const onItem =
  (starts: ReadonlySet<TokenKind>): Continues =>
  (look) =>
    look(1) === ',' && starts.has(look(2))

function chooseUnary(look: Look): number {
  if (look(1) === '!') return 1
  if (look(1) !== '-') return STARTS_MEMBER.has(look(1)) ? 0 : -1
  if (isNumber(look(2))) return 0
  return STARTS_MEMBER.has(look(2)) ? 2 : -2
}

function continuesMinus(look: Look): boolean | number {
  if (look(1) !== '-') return STARTS_MEMBER.has(look(1)) ? false : 1
  return STARTS_MEMBER.has(look(2)) ? true : 2
}

function chooseMember(look: Look): number {
  if (look(1) === '[') return 2
  if (look(1) !== '.') return -1
  if (look(2) === 'IDENTIFIER') return look(3) === '(' ? 1 : 0
  return STARTS_FIELD.has(look(2)) ? 0 : -2
}

function choosePrimary(look: Look): number {
  const brackets = (['(', '[', '{'] as TokenKind[]).indexOf(look(1))
  if (brackets !== -1) return brackets + 2
  if (look(1) === '-' || STARTS_LITERAL.includes(look(1))) return 6
  let at = look(1) === '.' ? 2 : 1
  if (look(at) !== 'IDENTIFIER') return -at
  if (look(at + 1) === '(') return 1
  while (look(at + 1) === '.' && look(at + 2) === 'IDENTIFIER') at += 2
  return look(at + 1) === '{' ? 5 : 0
}

function chooseLiteral(look: Look): number {
  const number = look(1) === '-' ? 2 : 1
  const kinds: readonly TokenKind[] = ['NUM_INT', 'NUM_FLOAT', 'NUM_UINT', 'STRING', 'BYTES', 'true', 'false', 'null']
  const found = kinds.indexOf(look(number))
  return found === -1 || (number === 2 && found > 1) ? -number : found
}

const chooseName: Choose = (look) => (['IDENTIFIER', 'ESC_IDENTIFIER'] as TokenKind[]).indexOf(look(1))

const PRODUCTS: readonly TokenKind[] = ['*', '/', '%']
const SUMS: readonly TokenKind[] = ['-', '+']
const RELATIONS: readonly TokenKind[] = ['==', '!=', 'in', '<', '<=', '>=', '>']

const onRelation: Continues = (look, precedence) => precedence <= 1 && RELATIONS.includes(look(1))

const onCalculation: Continues = (look, precedence) =>
  (precedence <= 2 && PRODUCTS.includes(look(1))) || (precedence <= 1 && SUMS.includes(look(1)))

const entry = sequence(rule('optExpr'), token(':'), rule('expr'))
const field = sequence(rule('optField'), token(':'), rule('expr'))

export const RULES: Readonly<Record<RuleName, Element>> = {
  start: sequence(rule('expr'), token('EOF')),
  expr: sequence(rule('conditionalOr'), optional(token('?'), rule('conditionalOr'), token(':'), rule('expr'))),
  conditionalOr: sequence(rule('conditionalAnd'), star(on('||'), token('||'), rule('conditionalAnd'))),
  conditionalAnd: sequence(rule('relation'), star(on('&&'), token('&&'), rule('relation'))),
  relation: sequence(rule('calc'), star(onRelation, token(...RELATIONS), rule('relation', 2))),
  calc: sequence(
    rule('unary'),
    star(
      onCalculation,
      choice(
        (look) => (PRODUCTS.includes(look(1)) ? 0 : 1),
        sequence(token(...PRODUCTS), rule('calc', 3)),
        sequence(token(...SUMS), rule('calc', 2)),
      ),
    ),
  ),
  unary: choice(
    chooseUnary,
    rule('member'),
    sequence(plus(on('!'), token('!')), rule('member')),
    sequence(plus(continuesMinus, token('-')), rule('member')),
  ),
  member: sequence(
    rule('primary'),
    star(
      on('.', '['),
      choice(
        chooseMember,
        sequence(token('.'), optional(token('?')), rule('escapeIdent')),
        sequence(token('.'), token('IDENTIFIER'), token('('), optional(rule('exprList')), token(')')),
        sequence(token('['), optional(token('?')), rule('expr'), token(']')),
      ),
    ),
  ),
  primary: choice(
    choosePrimary,
    sequence(optional(token('.')), token('IDENTIFIER')),
    sequence(optional(token('.')), token('IDENTIFIER'), token('('), optional(rule('exprList')), token(')')),
    sequence(token('('), rule('expr'), token(')')),
    sequence(token('['), optional(rule('listInit')), optional(token(',')), token(']')),
    sequence(token('{'), optional(rule('mapInitializerList')), optional(token(',')), token('}')),
    sequence(
      optional(token('.')),
      token('IDENTIFIER'),
      star(on('.'), token('.'), token('IDENTIFIER')),
      token('{'),
      optional(rule('fieldInitializerList')),
      optional(token(',')),
      token('}'),
    ),
    rule('literal'),
  ),
  exprList: sequence(rule('expr'), star(on(','), token(','), rule('expr'))),
  listInit: sequence(rule('optExpr'), star(onItem(STARTS_ITEM), token(','), rule('optExpr'))),
  fieldInitializerList: sequence(field, star(onItem(STARTS_FIELD), token(','), field)),
  optField: sequence(optional(token('?')), rule('escapeIdent')),
  mapInitializerList: sequence(entry, star(onItem(STARTS_ITEM), token(','), entry)),
  escapeIdent: choice(chooseName, token('IDENTIFIER'), token('ESC_IDENTIFIER')),
  optExpr: sequence(optional(token('?')), rule('expr')),
  literal: choice(
    chooseLiteral,
    sequence(optional(token('-')), token('NUM_INT')),
    sequence(optional(token('-')), token('NUM_FLOAT')),
    token('NUM_UINT'),
    token('STRING'),
    token('BYTES'),
    token('true'),
    token('false'),
    token('null'),
  ),
}
