// Rewrites dates of any language as ASCII. The time follows the date, with AM or PM, and without
// words around them.
import { withoutTypography } from './typography.ts'

/**
 * The words for AM (and below, for PM) in many languages. Chinese and Korean divide the day into
 * more parts.
 */
const MORNINGS =
  'ص صباحا ق.ظ ق.م قبلازظهر לפנה״צ पूर्वाह्न सुबह म.पू सकाळी পূর্বাহ্ণ পূর্বাহ্ন সকাল முற்பகல் காலை పూర్వాహ్నం ಪೂರ್ವಾಹ್ನ પૂર્વાહ્ન ਪੂ.ਦੁ പൂർവ്വാഹ്നം පෙ.ව ก่อนเที่ยง နံနက် ກ່ອນທ່ຽງ ព្រឹក SA PG p.d paradite de dop f.h fm ap vm vorm пр.об претпл пренеподне дп д.п priešpiet priekšp r.n ጥዋት ү.ө ب.ن غ.م ÖÖ TO ТО 凌晨 清晨 早上 上午 午前 오전 새벽 아침'
const EVENINGS =
  'م مساء ب.ظ ب.م بعدازظهر אחה״צ अपराह्न दोपहर शाम म.उ दुपारी संध्याकाळी অপরাহ্ণ অপরাহ্ন বিকাল সন্ধ্যা பிற்பகல் மாலை అపరాహ్నం ಅಪರಾಹ್ನ અપરાહ્ન ਬਾ.ਦੁ അപരാഹ്നം ප.ව หลังเที่ยง ညနေ ຫຼັງທ່ຽງ ល្ងាច CH PTG m.d pasdite du odp pop e.h em ip nm nachm сл.об попл пп п.п popiet pēcp i.n ከሰዓት ү.х د.ن غ.و ÖS TK ТК 中午 下午 傍晚 晚上 午後 오후 저녁'
const HALVES = new Map<string, string>()
for (const [words, half] of [
  [MORNINGS, 'AM'],
  [EVENINGS, 'PM'],
] as const)
  for (const word of words.replaceAll('.', '').toLowerCase().split(' ')) HALVES.set(word, half)
/** Matches a word, which may have dots and spaces between its letters. */
const WORD = /(?<![\p{L}\p{M}])\p{L}[\p{L}\p{M}״]*(?:\. ?\p{L}[\p{L}\p{M}]*)*\.?(?![\p{L}\p{M}])/gu
/** Years that are counted from a ruler, or from the Republic of China. */
const RULERS: readonly [RegExp, number][] = [
  [/^(\[?)(?:R|令和)(\d{1,2})(?=\D)/, 2018],
  [/^(\[?)(?:H|平成)(\d{1,2})(?=\D)/, 1988],
  [/^(\[?)民[國国](\d{2,3})(?=\D)/, 1911],
]
/** Matches names of calendars, which are not needed, because the year itself shows the calendar. */
const ERA = /\b(?:B\.?E|A\.?H|A\.?P|A\.?D)\b\.?|พ\.?ศ\.?|ค\.?ศ\.?|هـ?\.?ش?(?=[\s,]|$)/g
/** Matches the words for year and hour in Bulgarian and Ukrainian. */
const NOUN = /(?<!\s)\s*(?:г|р|ч)\.(?=[\s,]|$)/g
/** Matches a number with the word for year, month or day. */
const CHINESE = /(\d) ?([年月日년월일]) ?/g
const HOURS = /(\d) ?h ?(\d\d)(?: min (\d\d) s)?/
const TIME_FIRST = /^(\[?)(\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?),? +(\d.*)$/

/** Rewrites a date. If a text contains no date, the result has no meaning. */
export function plainDate(text: string): string {
  let plain = withDigits(withoutTypography(text))
    .replace(/[،、]/g, ',')
    .replace(NOUN, '')
    .replace(ERA, '')
    .replace(/^(\[?)\s+/, '$1')
  for (const [ruler, before] of RULERS)
    plain = plain.replace(ruler, (_, open, year) => `${open}${before + Number(year)}`)
  return plain
    .replace(CHINESE, (_, number, unit) => `${number}${unit === '日' || unit === '일' ? ' ' : '/'}`)
    .replace(WORD, (word) => HALVES.get(word.replaceAll(/[. ]/g, '').toLowerCase()) ?? word)
    .replace(/([AP]M)(?=\d)/, '$1 ')
    .replace(HOURS, (_, hours, minutes, seconds) =>
      [hours, minutes, seconds].filter(Boolean).join(':'),
    )
    .replace(TIME_FIRST, '$1$3 $2')
    .trim()
}

function withDigits(text: string): string {
  return text.replace(/(?![0-9])\p{Nd}/gu, (digit) => {
    const code = digit.codePointAt(0) ?? 0
    // Unicode has the digits of each script in a row, some scripts after another.
    let zero = code
    while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero -= 1
    return String((code - zero) % 10)
  })
}
