/** Draws the sections of a summary. */
import type { VNode } from 'preact'

import { ObjectLink } from '../objects/object-link.tsx'
import { AgeText } from '../parts/age-text.tsx'
import { LongText } from '../parts/long-text.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import type { Cell, FieldsSection, Section, TableSection, Value } from './section.ts'

interface SectionViewProps {
  readonly cluster: string
  readonly section: Section
}

export function SectionView({ cluster, section }: SectionViewProps): VNode | null {
  if (section.type === 'table') return <TableView cluster={cluster} section={section} />
  return section.fields.length === 0 ? null : <FieldsView cluster={cluster} section={section} />
}

function FieldsView({ cluster, section }: { readonly cluster: string; readonly section: FieldsSection }): VNode {
  const { title, tone, fields } = section
  return (
    <section class={tone === undefined ? 'box' : `box box-${tone}`}>
      <h2>{title}</h2>
      <dl class="fields">
        {fields.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>
              <CellView cluster={cluster} cell={value} name={label} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

function TableView({ cluster, section }: { readonly cluster: string; readonly section: TableSection }): VNode {
  const { title, columns, rows } = section
  const cellsOf = (row: readonly Cell[]): readonly VNode[] =>
    row.map((cell, at) => <CellView key={at} cluster={cluster} cell={cell} name={columns[at] ?? ''} />)
  return (
    <section class="box box-wide">
      <h2>{title}</h2>
      <PlainTable label={title} columns={columns} rows={rows} cells={cellsOf} />
    </section>
  )
}

interface CellViewProps {
  readonly cluster: string
  readonly cell: Cell
  readonly name: string
}

export function CellView({ cluster, cell, name }: CellViewProps): VNode | null {
  if (cell === undefined || cell === '') return null
  if (typeof cell === 'object' && !('text' in cell)) {
    return (
      <>
        {cell.map((one, at) => (
          <div key={at}>
            <CellView cluster={cluster} cell={one} name={name} />
          </div>
        ))}
      </>
    )
  }
  if (typeof cell === 'object') return <ValueView cluster={cluster} value={cell} name={name} />
  const text = <LongText text={String(cell)} name={name} />
  return String(cell).length > SENTENCE ? <div class="sentence">{text}</div> : text
}

/** Longer texts of a table get room to wrap: on narrow screens the table scrolls. */
const SENTENCE = 60
/** Names of objects have at most 253 characters; what stands around them is short. */
const MAX_LINK = 400

interface ValueViewProps {
  readonly cluster: string
  readonly value: Value
  readonly name: string
}

function ValueView({ cluster, value, name }: ValueViewProps): VNode {
  const { text, tone, to, since } = value
  if (since !== undefined) return <AgeText time={since} />
  const linked =
    to === undefined ? (
      <LongText text={text} name={name} />
    ) : (
      <ObjectLink cluster={cluster} to={to}>
        <bdi class="text">{text.slice(0, MAX_LINK)}</bdi>
      </ObjectLink>
    )
  return tone === undefined ? linked : <span class={`words words-${tone}`}>{linked}</span>
}
